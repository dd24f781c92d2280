/** Cables as two lanes each, traffic keeping right. */
import type { Fabric } from "./data";
import type { SwitchLinks } from "./fabric-links";
import type { Box, Line } from "./fabric-marks";

/** Between the lanes of a cable where there is room, CSS pixels. */
export const LANE_GAP = 5.2;

/** A place on the map. */
export interface Point {
  x: number;
  y: number;
}

/** Directions in which lines already leave each switch. */
class Exits {
  private readonly used = new Map<number, Point[]>();

  add(node: number, out: Point): void {
    this.used.set(node, [...(this.used.get(node) ?? []), out]);
  }

  /** The direction itself, or the nearest of its turns by 45° in which no line leaves yet. */
  take(node: number, out: Point): Point {
    const turns = [0, 1, -1, 2, -2, 3, -3].map((eighths) => turned(out, (eighths * Math.PI) / 4));
    const taken = this.used.get(node) ?? [];
    const free = (u: Point) => taken.every((other) => other.x * u.x + other.y * u.y < 0.9);
    const found = turns.find(free) ?? out;
    this.add(node, found);
    return found;
  }
}

function turned(u: Point, angle: number): Point {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  return { x: u.x * cos - u.y * sin, y: u.x * sin + u.y * cos };
}

/** A cable between two boxes: `out` leads from a to b. */
interface Span {
  link: number;
  ends: [number, number];
  a: Point;
  b: Point;
  out: Point;
  length: number;
  /** How far it is moved sideways to leave room for other cables of the same pair. */
  shift: number;
}

function spans(fabric: Fabric, links: SwitchLinks, boxes: Box[], gap: number): Span[] {
  const centers = new Map<number, Point>();
  for (const box of boxes) {
    centers.set(box.node, { x: box.x + box.width / 2, y: box.y + box.height / 2 });
  }
  const parallel = new Map<string, number>();
  return links.trunks.flatMap((link): Span[] => {
    const cable = fabric.links[link];
    const a = cable && centers.get(cable.a);
    const b = cable && centers.get(cable.b);
    if (!cable || !a || !b) return [];
    const pair = `${Math.min(cable.a, cable.b)}/${Math.max(cable.a, cable.b)}`;
    const nth = parallel.get(pair) ?? 0;
    parallel.set(pair, nth + 1);
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const out = { x: (b.x - a.x) / length, y: (b.y - a.y) / length };
    // Further cables of a pair run beside the first, in turn on either side of it.
    const side = (nth % 2 === 0) === cable.a < cable.b ? 1 : -1;
    const shift = side * Math.ceil(nth / 2) * 2 * gap;
    return [{ link, ends: [cable.a, cable.b], a, b, out, length, shift }];
  });
}

/**
 * The cables between switches. Those longer than one and a half times the pitch become stubs;
 * `gap` is between the lanes of a cable.
 */
export function lanes(
  fabric: Fabric,
  links: SwitchLinks,
  boxes: Box[],
  { pitch, gap }: { pitch: number; gap: number },
): Line[] {
  const [half, tall] = [(boxes[0]?.width ?? 0) / 2, (boxes[0]?.height ?? 0) / 2];
  // From the middle of a box to its edge, in a direction.
  const inset = ({ x, y }: Point) =>
    Math.min(half / Math.max(1e-6, Math.abs(x)), tall / Math.max(1e-6, Math.abs(y))) + 1;
  const all = spans(fabric, links, boxes, gap);
  const whole = all.filter((span) => span.length <= pitch * 1.5);
  const long = all.filter((span) => span.length > pitch * 1.5);
  const exits = new Exits();
  for (const { ends, out } of whole) {
    exits.add(ends[0], out);
    exits.add(ends[1], { x: -out.x, y: -out.y });
  }
  const along = (from: Point, u: Point, by: number) => ({
    x: from.x + u.x * by,
    y: from.y + u.y * by,
  });
  const lines = whole.flatMap(({ link, a, b, out, shift }) =>
    twoLanes(link, along(a, out, inset(out)), along(b, out, -inset(out)), { shift, gap }),
  );
  // The ends of wrapping cables point away from each other, as if going round the back.
  const stubs = long.flatMap(({ link, ends, a, b, out, shift }) => {
    const [edge, reach] = [half + 1, half + 1 + pitch * 0.2];
    const beside = { shift, gap };
    const left = exits.take(ends[0], { x: -out.x, y: -out.y });
    const right = exits.take(ends[1], out);
    return [
      ...twoLanes(link, along(a, left, edge), along(a, left, reach), beside, true),
      // Seen from b the way out is b→a, so the roles of the lanes swap.
      ...twoLanes(link, along(b, right, edge), along(b, right, reach), beside, true, true),
    ];
  });
  return [...lines, ...stubs];
}

function twoLanes(
  link: number,
  from: Point,
  to: Point,
  { shift, gap }: { shift: number; gap: number },
  stub = false,
  swapped = false,
): Line[] {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  // The right-hand side of from→to, y pointing down.
  const right = { x: -(to.y - from.y) / length, y: (to.x - from.x) / length };
  return ([1, -1] as const).map((side) => {
    const offset = (side * gap) / 2 + shift;
    const dx = right.x * offset;
    const dy = right.y * offset;
    const way = (side === 1) !== swapped ? "forward" : "backward";
    return { link, way, x1: from.x + dx, y1: from.y + dy, x2: to.x + dx, y2: to.y + dy, stub };
  });
}
