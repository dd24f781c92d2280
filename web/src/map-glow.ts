/** The congestion trees as light behind the links: brightest at the root. */
import type { Trees } from "./congestion-tree";
import { svg } from "./dom";
import type { Layout } from "./fabric-marks";
import type { History } from "./over-time";

/** Steps from the root that are told apart; the last stands for all beyond. */
export const DEPTHS = 4;

/** Widths of the inner and the outer light by depth, CSS pixels. */
const WIDTHS = [
  [9, 17],
  [7, 13],
  [5.5, 10],
  [4.5, 8],
] as const;

/** Depth at which a link is lit: the smaller of its lit directions; -1 if it is not. */
function depthOf(history: History, trees: Trees, link: number, way: string): number {
  let least = -1;
  for (const direction of [0, 1]) {
    if (way === (direction === 0 ? "backward" : "forward")) continue;
    const row = history.rowOf(2 * link + direction);
    const depth = row < 0 ? -1 : (trees.depth[row] ?? -1);
    if (depth >= 0 && (least < 0 || depth < least)) least = depth;
  }
  return least;
}

/** Draws the light of an instant. */
export function drawGlow(
  group: SVGElement,
  layout: Layout,
  history: History | null,
  trees: Trees | null,
): void {
  if (!history || !trees) {
    group.replaceChildren();
    return;
  }
  const marks: { depth: number; mark: SVGElement }[] = [];
  const add = (depth: number, mark: SVGElement) => marks.push({ depth, mark });
  const shrink = layout.lanes ? 0.9 : 1;
  for (const { link, way, x1, y1, x2, y2 } of layout.lines) {
    const depth = Math.min(depthOf(history, trees, link, way), DEPTHS - 1);
    if (depth < 0) continue;
    const [inner, outer] = WIDTHS[depth] ?? [4, 8];
    for (const width of [outer, inner]) {
      const stroke = { class: `glow-${depth}`, "stroke-width": width * shrink };
      add(depth, svg("line", { x1, y1, x2, y2, ...stroke }));
    }
  }
  for (const bar of layout.bars) {
    let least = -1;
    for (const link of bar.links) {
      const depth = depthOf(history, trees, link, "both");
      if (depth >= 0 && (least < 0 || depth < least)) least = depth;
    }
    const depth = Math.min(least, DEPTHS - 1);
    if (depth < 0) continue;
    for (const pad of layout.gathered ? [1] : [3.5, 1.5]) {
      const x = bar.x - bar.width / 2 - pad;
      const y = Math.min(bar.y, bar.y + bar.length) - pad;
      const size = { width: bar.width + 2 * pad, height: Math.abs(bar.length) + 2 * pad };
      add(depth, svg("rect", { class: `glow-${depth}`, x, y, ...size, rx: pad }));
    }
  }
  // Roots on top of their branches.
  marks.sort((p, q) => q.depth - p.depth);
  group.replaceChildren(...marks.map(({ mark }) => mark));
}
