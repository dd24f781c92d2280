/** The top of the page: title, finding, status, and the table of results. */
import type { Cell, HeadlineColumn, HeadlineRow, Report, Status, Variant } from "./data";
import type { Verdict } from "./data-verdict";
import { html, section } from "./dom";
import { decimalsFor, fixed } from "./format";

const STATUS: Record<Status, string> = {
  complete: "Complete",
  partial: "Partial: the run was interrupted",
  deadlock: "Deadlock",
  "not ended": "Not ended: a program takes longer than the limit",
  "not converged": "Not converged",
  starved: "Some senders starve",
};

/** Remarks shown before the rest is folded away: the results must stay near the top. */
const ODDITIES_SHOWN = 4;

/** Why a figure has no value. */
export const UNSTEADY =
  "More is offered than is delivered, so the latency grows for as long as the run lasts.";

/** Title, one-sentence finding and status. */
export function masthead(report: Report): HTMLElement {
  const good = report.status === "complete";
  const status = html("span", { class: good ? "status" : "status warn" }, STATUS[report.status]);
  return html(
    "header",
    { class: "masthead" },
    html("div", { class: "title" }, html("h1", {}, report.title), report.observed ? null : status),
    report.verdict ? verdict(report.verdict) : html("p", { class: "summary" }, report.summary),
  );
}

/** The verdict: a statement a line, what is wrong marked. */
function verdict({ lines, facts }: Verdict): HTMLElement {
  const rows = lines.flatMap(({ label, text }) => {
    const hurts = label === "victims" && !/^(0 of|nobody|none|not told|no )/i.test(text);
    const congested = ["congestion", "losses"].includes(label) && !/^no /i.test(text);
    const bad = label === "fault" || congested ? "bad" : hurts ? "bad of-victims" : "";
    return [html("dt", { class: bad }, label), html("dd", {}, text)];
  });
  return html("div", {}, html("dl", { class: "verdict" }, ...rows), factList(facts));
}

/** Facts of cables and tables, folded away: the verdict names the worst. */
function factList(facts: Verdict["facts"]): HTMLElement | null {
  if (facts.length === 0) {
    return null;
  }
  const items = facts.map(({ fact, text, more }) => {
    const others = more.map((line) => html("li", {}, line));
    const list = others.length > 0 ? html("ul", {}, ...others) : null;
    return html("li", {}, html("b", {}, fact.replaceAll("-", " ")), `: ${text}`, list);
  });
  const kinds = facts.length === 1 ? "1 fact" : `${facts.length} facts`;
  const title = html("summary", {}, `${kinds} of cables and tables`);
  return html("details", { class: "facts" }, title, html("ul", {}, ...items));
}

/** Results of every variant, aligned, the best of each column marked. */
export function headlineTable(report: Report): HTMLElement {
  const { columns, rows } = report.headline;
  const cellsOf = (column: HeadlineColumn) => rows.map((row) => row.cells[column.key]);
  const best = columns.map((column) => bestCells(column.better, contenders(report, column)));
  const decimals = columns.map((column) => columnDecimals(cellsOf(column)));
  const intervals = columns.map((column) => cellsOf(column).some((cell) => cell?.interval != null));
  const head = html(
    "tr",
    {},
    html("th", { scope: "col" }, report.observed?.row ?? "Variant"),
    ...columns.map((column) => columnHead(column)),
  );
  const body = rows.map((row, r) =>
    html(
      "tr",
      {},
      html(
        "th",
        { scope: "row" },
        row.variant,
        unsettled(report, row),
        row.summary && html("span", { class: "what" }, row.summary),
      ),
      ...columns.map((column, c) => {
        const style = { decimals: decimals[c] ?? 0, interval: intervals[c] ?? false };
        return cellOf(row.cells[column.key], style, best[c]?.[r] ?? false);
      }),
    ),
  );
  const table = html(
    "table",
    { class: "numbers headline" },
    html("thead", {}, head),
    html("tbody", {}, ...body),
  );
  const scroll = html("div", { class: "scroll", tabindex: 0, role: "region" }, table);
  const by = report.observed?.row.toLowerCase() ?? "variant";
  scroll.setAttribute("aria-label", `Results by ${by}`);
  const marked = best.some((column) => column.includes(true));
  const note = html("p", { class: "note" }, headlineNote(report, intervals.includes(true), marked));
  return section("results", "Results", scroll, note, oddities(report.oddities));
}

/** A network that stands still, or a figure that was still changing, is best at nothing. */
function contenders(report: Report, column: HeadlineColumn): (Cell | undefined)[] {
  return report.headline.rows.map((row) => {
    const cell = row.cells[column.key];
    const counts = cell?.converged !== false && cell?.steady !== false;
    return deadlocked(report, row) || !counts ? undefined : cell;
  });
}

function deadlocked(report: Report, row: HeadlineRow): boolean {
  const stands = ({ deadlock, waiting }: Variant) => deadlock !== null || waiting !== undefined;
  return report.variants.some((variant) => variant.name === row.variant && stands(variant));
}

/** Says beside a variant's name that its figures may not be the last word. */
function unsettled(report: Report, row: HeadlineRow): HTMLElement | null {
  if (deadlocked(report, row)) return html("span", { class: "unsettled" }, "deadlock");
  const seeds = row.unsettled ?? [];
  if (seeds.length === 0) return null;
  const of = report.seeds.length > 1 ? `: ${seeds.length} of ${report.seeds.length} seeds` : "";
  const mark = html("span", { class: "unsettled" }, `not converged${of}`);
  mark.title = "Throughput was still changing at the end of the run, or nothing was measured.";
  return mark;
}

/** The mark of a figure that was still changing when a run ended. */
export function unsettledMark(): HTMLElement {
  const title = "still changing at the end of the run";
  return html("span", { class: "unsettled mark", title }, "*");
}

function columnHead(column: HeadlineColumn): HTMLElement {
  const arrow = column.better === "high" ? "higher is better" : "lower is better";
  const sign = column.better && (column.better === "high" ? "↑" : "↓");
  const unit = html("span", { class: "unit" }, [column.unit, sign].join(" ").trim() || "\u00a0");
  const hint = column.better && html("span", { class: "hidden" }, ` (${arrow})`);
  const head = html("th", { scope: "col" }, column.label, unit, hint);
  const told = [column.explained, column.better && arrow].filter(Boolean).join("; ");
  if (told) head.title = told;
  return head;
}

function cellOf(
  cell: Cell | undefined,
  style: { decimals: number; interval: boolean },
  best: boolean,
): HTMLElement {
  if (!cell || cell.value === null) {
    return html("td", { title: "not measured" }, html("span", { class: "quiet" }, "–"));
  }
  if (cell.steady === false) {
    return html("td", { title: UNSTEADY }, html("span", { class: "quiet" }, "no steady value"));
  }
  const text = fixed(cell.value, style.decimals);
  const value = html("span", { class: best ? "value best" : "value" }, text);
  const interval = cell.interval === null ? "" : `± ${fixed(cell.interval, style.decimals)}`;
  const mark = cell.converged === false && unsettledMark();
  const margin = style.interval && html("span", { class: "interval" }, interval);
  const spoken = best && html("span", { class: "hidden" }, " best");
  return html("td", {}, value, mark, spoken, margin);
}

/** Enough decimals for the values, and for the narrowest interval to show a digit. */
function columnDecimals(cells: (Cell | undefined)[]): number {
  const values = cells.flatMap((cell) => (cell?.value == null ? [] : [cell.value]));
  const intervals = cells.flatMap((cell) => (cell?.interval ? [cell.interval] : []));
  const decimals = decimalsFor(values);
  if (intervals.length === 0) return decimals;
  // Digits far below the uncertainty say nothing.
  const useful = Math.max(0, -Math.floor(Math.log10(Math.min(...intervals))));
  return Math.min(decimals, useful);
}

/**
 * Which cells are best: the extreme one, and those whose interval overlaps with its interval, or
 * that are within a hundredth of it where there are none.
 */
export function bestCells(
  better: HeadlineColumn["better"],
  cells: (Cell | undefined)[],
): boolean[] {
  const measured = cells.filter((cell) => cell?.value != null);
  if (better === null || measured.length < 2) return cells.map(() => false);
  const sign = better === "high" ? 1 : -1;
  // One seed has no interval: what is nearer than a hundredth counts as a tie.
  const margin = (cell: Cell) => cell.interval ?? 0.005 * Math.abs(cell.value ?? 0);
  const low = (cell: Cell) => sign * (cell.value ?? 0) - margin(cell);
  const high = (cell: Cell) => sign * (cell.value ?? 0) + margin(cell);
  let champion: Cell | undefined;
  for (const cell of cells) {
    if (cell?.value == null) continue;
    if (!champion || sign * cell.value > sign * (champion.value ?? 0)) champion = cell;
  }
  const marks = cells.map(
    (cell) => !!champion && cell?.value != null && high(cell) >= low(champion),
  );
  // A column in which nothing stands out has no best.
  return marks.filter(Boolean).length === measured.length ? cells.map(() => false) : marks;
}

function headlineNote(report: Report, intervals: boolean, marked: boolean): string {
  if (report.observed) return "Point at a heading for its definition.";
  const seeds = report.seeds.length;
  const spread = intervals
    ? `Means over ${seeds} seeds ± half the 95 % confidence interval. `
    : `${seeds === 1 ? "One seed, so no interval" : `Means over ${seeds} seeds`}. `;
  const changing = report.headline.rows.some(({ cells }) =>
    Object.values(cells).some(({ converged }) => converged === false),
  );
  const star = changing ? " *: still changing at the end of the run." : "";
  const ends = "↑ higher is better, ↓ lower is better. Point at a heading for its definition.";
  if (!marked) return spread + ends + star;
  const ties = intervals ? "statistical ties" : "ties within 1 %";
  return `${spread}Underlined: best, including ${ties}. ${ends}${star}`;
}

/** Remarks, the first few of them unfolded; null if there are none. */
export function oddities(lines: string[]): HTMLElement | null {
  if (lines.length === 0) return null;
  const list = (some: string[]) => html("ul", {}, ...some.map((line) => html("li", {}, line)));
  const rest = lines.slice(ODDITIES_SHOWN);
  const more = html("summary", {}, `${rest.length} more`);
  return html(
    "div",
    { class: "oddities" },
    html("h3", {}, "Worth knowing"),
    list(lines.slice(0, ODDITIES_SHOWN)),
    rest.length > 0 && html("details", {}, more, list(rest)),
  );
}
