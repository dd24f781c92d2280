/** What lies under the pointer. */
import type { Bar, Layout } from "./fabric-marks";

/** What the reader points at. */
export type Selection =
  | { kind: "link"; link: number }
  | { kind: "node"; node: number }
  | { kind: "bar"; bar: Bar };

/** How far from a line the pointer may be, CSS pixels. */
const REACH = 7;

/** The box, bar or line at a place of the layout, in this order; null on empty ground. */
export function find(layout: Layout, x: number, y: number): Selection | null {
  for (const box of layout.boxes) {
    const pad = layout.gathered ? 0 : 2;
    const inX = x >= box.x - pad && x <= box.x + box.width + pad;
    if (inX && y >= box.y - pad && y <= box.y + box.height + pad) {
      return { kind: "node", node: box.node };
    }
  }
  for (const bar of layout.bars) {
    const low = Math.min(bar.y, bar.y + bar.length);
    const half = bar.width / 2 + 1;
    const hit = Math.abs(x - bar.x) <= half && y >= low && y <= low + Math.abs(bar.length);
    const [link] = bar.links;
    if (!hit || link === undefined) continue;
    return bar.noun ? { kind: "bar", bar } : { kind: "link", link };
  }
  let nearest: Selection | null = null;
  let best = REACH;
  for (const line of layout.lines) {
    const away = distance(x, y, line.x1, line.y1, line.x2, line.y2);
    if (away < best) {
      best = away;
      nearest = { kind: "link", link: line.link };
    }
  }
  return nearest;
}

function distance(x: number, y: number, x1: number, y1: number, x2: number, y2: number): number {
  const dx = x2 - x1;
  const dy = y2 - y1;
  const square = dx * dx + dy * dy || 1;
  const along = Math.min(1, Math.max(0, ((x - x1) * dx + (y - y1) * dy) / square));
  return Math.hypot(x - x1 - along * dx, y - y1 - along * dy);
}
