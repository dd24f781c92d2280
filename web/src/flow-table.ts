/** Flows as a table: what each is delivered, how much slower it is, and what holds it back. */
import type { Series } from "./data";
import { html } from "./dom";
import { fixed, percent, times } from "./format";
import type { Names } from "./names";
import { slowdownOf, type Channel, type Flow } from "./over-time";

/** What a table of flows needs to know and to tell. */
export interface FlowColumns {
  names: Names;
  groups: Series[];
  openFlow(flow: Flow): void;
  openRoot(channel: Channel): void;
}

const SHOWN = 8;
const SHOWN_MOST = 200;

/**
 * A table of flows in the order given, a few of them until the reader asks for more. Where the
 * first `suffering` are victims, these are marked, and no others are shown before.
 */
export function flowTable(
  flows: Flow[],
  columns: FlowColumns,
  label: string,
  suffering?: number,
): HTMLElement {
  if (flows.length === 0) return html("p", { class: "note" }, "No recorded flow.");
  const alone = flows.some(({ aloneGbps }) => aloneGbps !== null);
  const acks = flows.some(({ acksHeld }) => acksHeld > 0);
  const heads = [
    ["Flow", "", ""],
    ["Group", "", ""],
    ["Delivered", "Gb/s", "payload over the measured part"],
    ...(alone ? [["Alone", "Gb/s", "without the hot flows"]] : []),
    ...(alone ? [["Slowdown", "", "alone over delivered"]] : []),
    ["Share delivered", "of offered", "of what its sender offers in the group"],
    ["Time held back", "", "share of time in which a link of its path was held back"],
    ...(acks ? [["ACKs held back", "", "the same of the path of its acknowledgements"]] : []),
    ["Held back by", "", "the link at the root of the congestion, most often"],
  ] as [string, string, string][];
  const last = heads.length - 1;
  const head = heads.map(([text, unit, title], i) => {
    const numeric = i > 1 && i < last;
    const sub = html("span", { class: "unit" }, unit || "\u00a0");
    const attributes = { scope: "col", class: numeric && "number", title: title || null };
    return html("th", attributes, text, sub);
  });
  const body = html("tbody", {});
  const show = (many: number) => {
    const rows = flows.slice(0, many).map((flow, i) => {
      const isVictim = suffering !== undefined && i < suffering;
      return row(flow, columns, { alone, acks, isVictim });
    });
    body.replaceChildren(...rows);
  };
  const whole = html("table", { class: "flows" }, html("thead", {}, html("tr", {}, ...head)), body);
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": label };
  const scroll = html("div", region, whole);
  return unfolding(scroll, show, { first: Math.min(suffering ?? SHOWN, SHOWN), all: flows.length });
}

/** A table with its first rows, none of it where there are none, and a button for the others. */
export function unfolding(
  table: HTMLElement,
  show: (rows: number) => void,
  { first, all }: { first: number; all: number },
): HTMLElement {
  show(first);
  if (all <= first) return table;
  table.hidden = first === 0;
  const most = Math.min(all, SHOWN_MOST);
  const text = most < all ? `Show ${most} of ${all}` : `Show all ${most}`;
  const more = html("button", { type: "button", class: "more" }, text);
  more.addEventListener("click", () => {
    show(most);
    table.hidden = false;
    more.remove();
  });
  return html("div", {}, table, more);
}

function row(
  flow: Flow,
  columns: FlowColumns,
  { alone, acks, isVictim }: { alone: boolean; acks: boolean; isVictim: boolean },
): HTMLElement {
  const { names, groups } = columns;
  const open = html(
    "button",
    { type: "button", class: "link" },
    `${names.node(flow.from)} → ${names.node(flow.to)}`,
  );
  open.addEventListener("click", () => columns.openFlow(flow));
  const slowdown = slowdownOf(flow);
  const number = (text: string) => html("td", { class: "number" }, text);
  const decimals = (value: number) => (value >= 10 ? 1 : value >= 0.1 || value === 0 ? 2 : 3);
  const gbps = (value: number) => fixed(value, decimals(value));
  const share = flow.share === null ? "–" : percent(flow.share);
  const { root } = flow;
  const by = html("td", {}, root === null ? "–" : null);
  if (root !== null) {
    const button = html("button", { type: "button", class: "link" }, names.channel(root));
    button.addEventListener("click", () => columns.openRoot(root));
    by.append(button);
  }
  return html(
    "tr",
    { class: isVictim && "suffers" },
    html("th", { scope: "row" }, open),
    html("td", { class: "quiet" }, groups[flow.group]?.name ?? ""),
    number(gbps(flow.gbps)),
    alone && number(flow.aloneGbps === null ? "–" : gbps(flow.aloneGbps)),
    alone && html("td", { class: "number fate" }, slowdown === null ? "–" : times(slowdown)),
    html("td", { class: alone ? "number" : "number fate" }, share),
    number(percent(flow.held)),
    acks && number(percent(flow.acksHeld)),
    by,
  );
}
