/** When programs were complete: a bar for each program in each variant. */
import type { Report, Variant } from "./data";
import type { Completion, Program } from "./data-programs";
import { html, section, svg } from "./dom";
import { decimalsFor, fixed } from "./format";

/** Length of the longest bar, in units of the drawing. */
const LONGEST = 320;
const HEIGHT = 12;

/** A unit of time that numbers of this size read well in. */
function unitFor(us: number): { name: string; per: number } {
  if (us >= 1e6) return { name: "s", per: 1e6 };
  return us >= 1e4 ? { name: "ms", per: 1e3 } : { name: "µs", per: 1 };
}

/** The section, or null if no traffic has a program. */
export function completion(report: Report): HTMLElement | null {
  const programs = report.programs ?? [];
  if (programs.length === 0) return null;
  const all = programs.flatMap(({ completions }) => completions);
  const times = all.flatMap(({ us }) => us ?? []);
  const ends = all.map(({ us, interval_us: half }) => (us ?? 0) + (half ?? 0));
  const most = Math.max(1e-9, ...ends);
  const unit = unitFor(most);
  const halves = all.flatMap(({ interval_us: half }) => half ?? []);
  const decimals = decimalsFor([...times, ...halves].map((us) => us / unit.per));
  const intervals = halves.length > 0;
  const style = { most, per: unit.per, decimals, intervals };
  const heads = ["Program", "Variant", "Ranks", `Completion, ${unit.name}`, ""];
  const head = heads.map((text, i) =>
    html("th", { scope: "col", class: i === 2 || i === 3 ? "number" : null }, text),
  );
  const table = html(
    "table",
    { class: "completion" },
    html("thead", {}, html("tr", {}, ...head)),
    html("tbody", {}, ...programs.flatMap((program) => rowsOf(program, style))),
  );
  const label = "Completion of programs";
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": label };
  const spread = intervals
    ? ` Means over ${report.seeds.length} seeds ± half the 95 % confidence interval.`
    : "";
  const note =
    "From the beginning of the run until the last rank of the program had ended. Shorter is " +
    "better.";
  return section("completion", label, html("div", region, table), noteOf(note + spread));
}

const noteOf = (text: string) => html("p", { class: "note" }, text);

interface Style {
  most: number;
  per: number;
  decimals: number;
  intervals: boolean;
}

function rowsOf(program: Program, style: Style): HTMLElement[] {
  return program.completions.map((one, i) =>
    html(
      "tr",
      {},
      i === 0 &&
        html(
          "th",
          { scope: "rowgroup", rowspan: program.completions.length },
          program.name,
          html("span", { class: "what" }, program.kind),
        ),
      html("td", {}, one.variant),
      html("td", { class: "number" }, String(one.ranks)),
      timeOf(one, style),
      html("td", { class: "bar" }, barOf(program, one, style)),
    ),
  );
}

/** The time, or that there is none. */
function timeOf(one: Completion, style: Style): HTMLElement {
  if (one.us === null) return html("td", { class: "number unsettled" }, "not ended");
  const text = (us: number) => fixed(us / style.per, style.decimals);
  const interval = one.interval_us === null ? "" : ` ± ${text(one.interval_us)}`;
  const missing = one.seeds - one.ended;
  const of = missing > 0 && `not ended in ${missing} of ${one.seeds} seeds`;
  return html(
    "td",
    { class: "number" },
    html("span", { class: "value" }, text(one.us)),
    style.intervals && html("span", { class: "quiet" }, interval),
    of && html("span", { class: "unsettled" }, of),
  );
}

/** A bar as long as the program took, with its interval as a line. */
function barOf(program: Program, one: Completion, style: Style): SVGSVGElement | null {
  if (one.us === null) return null;
  const at = (us: number) => (LONGEST * Math.max(0, us)) / style.most;
  const half = one.interval_us ?? 0;
  const middle = HEIGHT / 2;
  const [low, high] = [at(one.us - half), at(one.us + half)];
  const bar = { x: 0, y: 0, width: at(one.us), height: HEIGHT, class: `of-${program.class}` };
  const spread = half > 0 && svg("path", { d: `M${low} ${middle}H${high}`, class: "spread" });
  const view = `0 0 ${LONGEST} ${HEIGHT}`;
  const size = { width: LONGEST, height: HEIGHT, viewBox: view, "aria-hidden": "true" };
  return svg("svg", size, svg("rect", bar), spread);
}

/** Ranks that wait for operations that never complete, or null. */
export function waitingRanks(variant: Variant): HTMLElement | null {
  const waiting = variant.waiting ?? [];
  if (waiting.length === 0) return null;
  const heads = ["Rank", "Program", "Host", "Waits for", "Rank", "Host", "Tag", "Context"];
  const numeric = [0, 4, 6, 7];
  const classOf = (i: number) => (numeric.includes(i) ? "number" : null);
  const either = (value: number | string | null, none: string) => String(value ?? none);
  const rows = waiting.map((one) => {
    const named = ["send", "receive", "probe"].includes(one.operation);
    const cells = [
      String(one.rank),
      one.program,
      one.host,
      one.operation,
      either(one.peer, named ? "any" : "–"),
      either(one.peer_host, "–"),
      either(one.tag, named ? "any" : "–"),
      either(one.context, "–"),
    ];
    return html("tr", {}, ...cells.map((text, i) => html("td", { class: classOf(i) }, text)));
  });
  const head = heads.map((text, i) => html("th", { scope: "col", class: classOf(i) }, text));
  const table = html(
    "table",
    {},
    html("thead", {}, html("tr", {}, ...head)),
    html("tbody", {}, ...rows),
  );
  const more = (variant.waiting_all ?? waiting.length) - waiting.length;
  return html(
    "div",
    { class: "deadlock" },
    html("h3", {}, "Deadlock"),
    html("p", {}, `Ranks of variant ${variant.name} wait for operations that never complete.`),
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Ranks" }, table),
    more > 0 && html("p", {}, `And ${more} more in summary.json.`),
  );
}
