/** The plain tables and lists of the page. */
import type { Fact, Report, Variant } from "./data";
import { html, section } from "./dom";
import { percent, rate } from "./format";
import { oddities } from "./headline";
import type { Names } from "./names";
import { channelOf } from "./over-time";

/** Published numbers beside ours; null if there are none. */
export function publishedTable(report: Report): HTMLElement | null {
  if (report.published.length === 0) return null;
  const heads = ["Quantity", "Published", "Obtained", "Unit", "Source and remarks"];
  const rows = report.published.map((row) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, row.name),
      html("td", { class: "number" }, row.published ?? "–"),
      html("td", { class: "number" }, row.obtained),
      html("td", {}, row.unit),
      html("td", { class: "prose" }, row.note),
    ),
  );
  return section("published", "Published and obtained", table(heads, [1, 2], rows, "Published"));
}

/** The most loaded or most blocked directions of a variant. */
export function worstLinks(
  report: Report,
  names: Names,
  variant: Variant,
  open: (link: number, direction: "forward" | "backward") => void,
): HTMLElement {
  if (variant.worst_links.length === 0) {
    return html("p", { class: "note" }, "No link of this variant stands out.");
  }
  const heads = ["From → to", "Load", "Carried", "Waiting", "Why"];
  const rows = variant.worst_links.map((row) => {
    const cable = report.fabric.links[row.link];
    const channel = channelOf(row.link, row.direction);
    const text = names.channel(channel);
    const [, to] = names.ends(channel);
    const button = html("button", { type: "button", class: "link" }, text);
    button.title = `${cable?.name ?? ""}: show on the map`;
    button.addEventListener("click", () => open(row.link, row.direction));
    return html(
      "tr",
      {},
      html("th", { scope: "row" }, button),
      html("td", { class: "number" }, percent(row.load, 1)),
      html("td", { class: "number" }, rate(row.load * (cable?.gbps ?? 0))),
      html("td", { class: "number" }, percent(row.wait, 1)),
      html("td", { class: "prose" }, names.shorten(row.why, to)),
    );
  });
  return table(heads, [1, 2, 3], rows, "Worst links");
}

/** The cycle of a deadlock, or null. */
export function deadlockCycle(variant: Variant): HTMLElement | null {
  if (!variant.deadlock) return null;
  const items = variant.deadlock.map((hop) =>
    html("li", {}, html("b", {}, hop.switch), ` input port ${hop.port}, VL ${hop.vl}`),
  );
  const intro = `Variant ${variant.name} ended in a deadlock. Each buffer waits for credits that
    only the next can free; the last waits for the first.`;
  const heading = html("h3", {}, "Deadlock");
  return html(
    "div",
    { class: "deadlock" },
    heading,
    html("p", {}, intro),
    html("ol", {}, ...items),
  );
}

/** Facts about the fabric and the run. */
export function facts(report: Report): HTMLElement {
  const labels = new Map<string, Fact[]>();
  for (const fact of report.facts) {
    labels.set(fact.label, [...(labels.get(fact.label) ?? []), fact]);
  }
  const line = ({ value, variants = [] }: Fact) => {
    const whose = variants.length > 0 ? `${variants.join(", ")}: ` : "";
    return html("dd", {}, html("span", { class: "quiet" }, whose), value);
  };
  const pairs = [...labels].map(([label, facts]) =>
    html("div", {}, html("dt", {}, label), ...facts.map(line)),
  );
  return section("facts", "Facts", html("dl", { class: "facts" }, ...pairs));
}

/** What a careful reader should know, where no table of results says it; null if nothing. */
export function remarks(report: Report): HTMLElement | null {
  return oddities(report.oddities);
}

/** What the model leaves out. */
export function notModelled(report: Report): HTMLElement | null {
  if (report.not_modelled.length === 0) return null;
  const items = report.not_modelled.map((line) => html("li", {}, line));
  return section("not-modelled", "Not modelled", html("ul", { class: "plain" }, ...items));
}

/** How to make the same results again. */
export function reproduce(report: Report): HTMLElement {
  const command = html("code", {}, report.command);
  const said = html("span", { class: "quiet", role: "status" });
  const copy = html("button", { type: "button" }, "Copy");
  copy.addEventListener("click", () => {
    const range = document.createRange();
    range.selectNodeContents(command);
    getSelection()?.removeAllRanges();
    getSelection()?.addRange(range);
    // The older call works on pages opened from disk, where navigator.clipboard may not.
    said.textContent = document.execCommand("copy") ? "Copied" : "Selected; copy it by keyboard";
  });
  const seeds = report.seeds.join(", ");
  const noun = report.seeds.length === 1 ? "seed" : "seeds";
  const seeded = report.seeds.length > 0 ? `; ${noun} ${seeds}` : "";
  const about = `Clearlane ${report.version}${seeded}. `;
  const line = html("div", { class: "command" }, html("pre", {}, command), copy, said);
  const same = report.observed ? "files and command" : "command and seeds";
  const again = report.observed?.repeats === false
    ? "Hosts and networks are real: another run has other figures."
    : `The same version, ${same} give the same bytes.`;
  const note = html("p", {}, about, again);
  return section("reproduce", "Reproduce", line, note);
}

function table(
  heads: string[],
  numeric: number[],
  rows: HTMLTableRowElement[],
  label: string,
): HTMLElement {
  const head = heads.map((text, i) =>
    html("th", { scope: "col", class: numeric.includes(i) ? "number" : null }, text),
  );
  const whole = html(
    "table",
    {},
    html("thead", {}, html("tr", {}, ...head)),
    html("tbody", {}, ...rows),
  );
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": label };
  return html("div", region, whole);
}
