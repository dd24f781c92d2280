/** The legend of the map, and the marks of hot receivers. */
import type { Report, Variant } from "./data";
import type { Trees } from "./congestion-tree";
import { html, svg } from "./dom";
import type { Layout } from "./fabric-marks";
import { bytes, count } from "./format";
import type { Metric } from "./load-scale";

/** Most hot receivers that are named on the map. */
const NAMED_MAX = 3;

/** One class of the scale and how many links fall into it. */
export interface LegendEntry {
  index: number;
  /** Of its lines where they are not thinned, CSS pixels. */
  width: number;
  /** Per cent. */
  range: string;
  /** Counted by the direction that colours them, or by their worse one. */
  links: number;
}

/** The legend's elements. */
export function drawLegend(
  metric: Metric,
  entries: LegendEntry[],
  variant: Variant,
  more: { queue: number; trees: Trees | null; victims: boolean; gathered: boolean },
): HTMLElement[] {
  const title = metric === "load" ? "Load of a link, %" : "Time a link waits for credits, %";
  const items = entries.map(({ index, width, range, links }) => {
    const line = { x1: 0, x2: 30, y1: 6, y2: 6, class: `ramp-${index}`, "stroke-width": width };
    const sample = svg("svg", { width: 30, height: 12, "aria-hidden": "true" }, svg("line", line));
    const number = html("span", { class: "quiet" }, ` ${count(links, "link")}`);
    return html("li", {}, sample, html("span", {}, range), number);
  });
  const extra = [];
  if (variant.hosts_hot.length > 0) extra.push(key("hot", "hot receiver"));
  const victim = more.gathered ? "switch with slowed senders" : "sender slowed or starved";
  if (more.victims) extra.push(key("victim", victim));
  if (more.trees) extra.push(key("tree", "congestion tree, brightest at its root"));
  const full = `bytes queued in a switch; full box: ${bytes(more.queue)}`;
  if (more.queue > 0) extra.push(key("queue", full));
  if (variant.deadlock) extra.push(key("stuck", "switch in the deadlock"));
  return [html("span", { class: "legend-title" }, title), html("ul", {}, ...items, ...extra)];
}

function key(kind: "hot" | "victim" | "stuck" | "tree" | "queue", label: string): HTMLElement {
  const frame = { x: 2, y: 1, width: 10, height: 10 };
  const signs = {
    hot: () => [svg("path", { class: "hot", d: triangle(7, 2) })],
    victim: () => [svg("rect", { class: "track victim", x: 4, y: 1, width: 5, height: 10 })],
    stuck: () => [svg("rect", { class: "box stuck", x: 2, y: 2, width: 10, height: 8 })],
    tree: () => [
      svg("line", { class: "glow-2", x1: 0, x2: 14, y1: 6, y2: 6, "stroke-width": 11 }),
      svg("line", { class: "glow-0", x1: 0, x2: 14, y1: 6, y2: 6, "stroke-width": 6 }),
    ],
    queue: () => [
      svg("rect", { class: "box", ...frame }),
      svg("rect", { class: "queue", x: 2.5, y: 5.5, width: 9, height: 5 }),
    ],
  };
  const sample = svg("svg", { width: 14, height: 12, "aria-hidden": "true" }, ...signs[kind]());
  return html("li", {}, sample, html("span", {}, label));
}

/** Triangles under the bars of hot receivers, with names if they are few. */
export function hotMarks(report: Report, variant: Variant, layout: Layout): SVGElement {
  const group = svg("g", { class: "hot-marks" });
  const hot = new Set(variant.hosts_hot);
  const named = hot.size <= NAMED_MAX;
  for (const bar of layout.bars) {
    const hosts = bar.links.flatMap((link) => {
      const ends = report.fabric.links[link];
      return ends ? [ends.a, ends.b].filter((node) => hot.has(node)) : [];
    });
    const [host] = hosts;
    if (host === undefined) continue;
    const tip = Math.max(bar.y, bar.y + bar.length) + 1;
    group.append(svg("path", { class: "hot", d: triangle(bar.x, tip) }));
    if (!named) continue;
    const nearEnd = bar.x > layout.width - 90;
    const x = nearEnd ? bar.x - 7 : bar.x + 7;
    const anchor = nearEnd ? "end" : "start";
    const name = report.fabric.nodes[host]?.name ?? "";
    group.append(svg("text", { x, y: tip + 8.5, "text-anchor": anchor }, name));
  }
  return group;
}

function triangle(x: number, y: number): string {
  return `M${x} ${y}l4.5 8h-9z`;
}
