/** What a figure would be in an ideal network, and its line with words on a chart. */
import type uPlot from "uplot";
import type { Report, Sweep, Variant } from "./data";
import { cssColor } from "./dom";
import { splitLinks } from "./fabric-links";
import { rate } from "./format";
import { historyOf } from "./over-time";

/** A line of a chart that no run made. */
export interface Ideal {
  label: string;
  /** In the unit of the vertical axis. */
  at(x: number): number;
}

/** An ideal that is the same everywhere. */
export const level = (label: string, value: number): Ideal => ({ label, at: () => value });

/** Nearness to the ideal that shows that it is one: a share of it. */
const NEAR = 0.05;

/** What groups could get: the rate of a hot receiver's link, and what they get alone. */
export function idealsOfGroups(report: Report, variant: Variant): Ideal[] {
  const { nodes, links } = report.fabric;
  const all = splitLinks(report.fabric).all;
  const rateOf = (node: number) =>
    (all[node] ?? []).reduce((sum, link) => sum + (links[link]?.gbps ?? 0), 0);
  const hot = variant.hosts_hot;
  const gbps = hot.reduce((sum, node) => sum + rateOf(node), 0);
  const [first] = hot;
  const whose = hot.length === 1 ? nodes[first ?? 0]?.name : `the ${hot.length} hot receivers`;
  const ideals = gbps > 0 ? [level(`link rate of ${whose}: ${rate(gbps)}`, gbps)] : [];
  const history = historyOf(variant);
  if (!history || history.flows.length < history.flowsTotal) return ideals;
  const others = variant.series.groups.filter((one) => one.class !== "hot");
  variant.series.groups.forEach(({ name }, group) => {
    const own = history.flows.filter((flow) => flow.group === group);
    if (own.length === 0 || own.some(({ aloneGbps }) => aloneGbps === null)) return;
    const alone = own.reduce((sum, flow) => sum + (flow.aloneGbps ?? 0), 0);
    // Charts that stand side by side are narrow.
    const who = others.length > 1 ? `${name} alone` : "without the hot flows";
    ideals.push(level(`${who}: ${rate(alone)}`, alone));
  });
  return ideals;
}

/** What a flow could get: the rate of its sender's link, where all hosts have the same. */
export function idealsOfFlows({ fabric }: Report): Ideal[] {
  const hosts = splitLinks(fabric).hosts.flat();
  const rates = new Set(hosts.map(({ link }) => fabric.links[link]?.gbps ?? 0));
  const [gbps = 0] = rates;
  return rates.size === 1 && gbps > 0 ? [level(`link rate of a host: ${rate(gbps)}`, gbps)] : [];
}

/** What a figure of a sweep could be along one of its axes. */
export function idealsOfFigure(sweep: Sweep, figure: number, axis: number): Ideal[] {
  const { key = "" } = sweep.figures[figure] ?? {};
  if (/slowdown$/.test(key)) return [level("ideal: as fast as alone", 1)];
  if (/jain$/.test(key)) return [level("ideal: equal shares", 1)];
  const { key: along = "", values = [] } = sweep.axes[axis] ?? {};
  if (!/delivered_load$/.test(key) || !/(^|\.)load$/.test(along)) return [];
  // The load of a part of the traffic is not what all senders together offer.
  const isNear = sweep.points.some(({ at, mean }) => {
    const [x, y] = [values[at[axis] ?? 0], mean[figure]];
    return typeof x === "number" && y != null && Math.abs(y - x) <= NEAR * x;
  });
  return isNear ? [{ label: "ideal: accepted = offered", at: (x) => x }] : [];
}

/** The unit of a quantity, in words where it has no symbol. */
export function unitOf({ key, unit }: { key: string; unit: string }): string {
  if (unit) return unit;
  if (/(worst_load|held_back)$/.test(key)) return "share of time";
  if (/(load|accepted)$/.test(key)) return "share of link rate";
  if (/slowdown$/.test(key)) return "times slower than alone";
  return /jain$/.test(key) ? "index, 1 for equal shares" : "";
}

/** Where the words of a line end: above its right end, or left of where it leaves the chart. */
function wordsAt(plot: uPlot, at: (x: number) => number): [number, number] {
  const { left, top, width } = plot.bbox;
  const scale = devicePixelRatio;
  const { min, max } = plot.scales["x"] ?? {};
  for (let share = 1; share > 0; share -= 0.01) {
    const x = (min ?? 0) + share * ((max ?? 0) - (min ?? 0));
    const y = plot.valToPos(at(x), "y", true);
    if (y < top - 0.5) continue;
    const right = left + share * width;
    if (share < 0.99) return [right - 10 * scale, y + 8 * scale];
    return [right - 4 * scale, y < top + 16 * scale ? y + 13 * scale : y - 6 * scale];
  }
  return [left + width, top];
}

/** Draws the lines dotted, each with its words. */
export function drawIdeals(plot: uPlot, ideals: Ideal[]): void {
  const { ctx } = plot;
  const { left, top, width, height } = plot.bbox;
  const scale = devicePixelRatio;
  const { min = 0, max = 0 } = plot.scales["x"] ?? {};
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle = cssColor("--muted");
  ctx.font = `${11 * scale}px system-ui, sans-serif`;
  ctx.textAlign = "right";
  for (const { label, at } of ideals) {
    const place = (share: number): [number, number] => {
      const x = (min ?? 0) + share * ((max ?? 0) - (min ?? 0));
      return [left + share * width, plot.valToPos(at(x), "y", true)];
    };
    ctx.lineWidth = 1.3 * scale;
    ctx.setLineDash([1.5 * scale, 3 * scale]);
    ctx.beginPath();
    for (let step = 0; step <= 40; step += 1) {
      const [x, y] = place(step / 40);
      if (Number.isFinite(y)) ctx.lineTo(x, y);
    }
    ctx.stroke();
    const [right, y] = wordsAt(plot, at);
    // On the page's ground: other lines do not cross the words.
    const wide = ctx.measureText(label).width;
    ctx.save();
    ctx.fillStyle = cssColor("--bg");
    ctx.globalAlpha = 0.75;
    ctx.fillRect(right - wide - 3 * scale, y - 10 * scale, wide + 6 * scale, 13 * scale);
    ctx.restore();
    ctx.fillText(label, right, y);
  }
  ctx.restore();
}
