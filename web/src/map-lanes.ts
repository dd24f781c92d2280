/** Cables as two lines each, one per direction: that of a→b on the right-hand side. */
import type { Fabric } from "./data";
import type { SwitchLinks } from "./fabric-links";
import type { Box, Line } from "./fabric-marks";

/** Between the two lines of a cable where there is room, CSS pixels. */
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
  ends: [Box, Box];
  a: Point;
  b: Point;
  out: Point;
  length: number;
  /** Which of the cables of its two switches it is, and how many they have. */
  nth: number;
  of: number;
}

const middleOf = ({ x, y, width, height }: Box): Point => ({ x: x + width / 2, y: y + height / 2 });

function spans(fabric: Fabric, links: SwitchLinks, boxes: Box[]): Span[] {
  const placed = new Map(boxes.map((box) => [box.node, box]));
  const bundles = new Map<string, number[]>();
  for (const link of links.trunks) {
    const cable = fabric.links[link];
    if (!cable) continue;
    const pair = `${Math.min(cable.a, cable.b)}/${Math.max(cable.a, cable.b)}`;
    const bundle = bundles.get(pair);
    if (bundle) bundle.push(link);
    else bundles.set(pair, [link]);
  }
  return [...bundles.values()].flatMap((bundle) =>
    bundle.flatMap((link, nth): Span[] => {
      const cable = fabric.links[link];
      const [from, to] = [cable && placed.get(cable.a), cable && placed.get(cable.b)];
      if (!from || !to) return [];
      const [a, b] = [middleOf(from), middleOf(to)];
      const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
      const out = { x: (b.x - a.x) / length, y: (b.y - a.y) / length };
      return [{ link, ends: [from, to], a, b, out, length, nth, of: bundle.length }];
    }),
  );
}

/** Half of how wide a box looks to who comes from a direction. */
const profile = ({ width, height }: Box, { x, y }: Point) =>
  (width * Math.abs(y) + height * Math.abs(x)) / 2;

/** Share of what a box shows to a cable that a bundle may take: beyond it are its corners. */
const FACE = 0.86;

/** Between the lines of a bundle: as told, or as near as its switches are small. */
function gapOf({ ends, out, of }: Span, gap: number): number {
  const face = FACE * 2 * Math.min(profile(ends[0], out), profile(ends[1], out));
  return Math.min(gap, face / (2 * of));
}

/**
 * The cables between switches. Those longer than one and a half times the pitch become stubs;
 * `gap` is between the two lines of a cable where there is room.
 */
export function lanes(
  fabric: Fabric,
  links: SwitchLinks,
  boxes: Box[],
  { pitch, gap }: { pitch: number; gap: number },
): Line[] {
  const all = spans(fabric, links, boxes);
  const loops = all.filter(({ ends }) => ends[0] === ends[1]);
  const between = all.filter(({ ends }) => ends[0] !== ends[1]);
  const whole = between.filter((span) => span.length <= pitch * 1.5);
  const long = between.filter((span) => span.length > pitch * 1.5);
  const exits = new Exits();
  for (const { ends, out } of whole) {
    exits.add(ends[0].node, out);
    exits.add(ends[1].node, { x: -out.x, y: -out.y });
  }
  const lines = whole.flatMap((span) => twoLines(span, gapOf(span, gap)));
  // The ends of wrapping cables point away from each other, as if going round the back.
  const stubs = long.flatMap((span) => {
    const { link, ends, a, b, out } = span;
    const reach = pitch * 0.2;
    const left = exits.take(ends[0].node, { x: -out.x, y: -out.y });
    const right = exits.take(ends[1].node, out);
    const beside = gapOf(span, gap);
    return [
      ...stub({ ...span, out: left }, [ends[0], a], reach, beside).map(named(link, false)),
      // Seen from b the way out is b→a, so the roles of the lines swap.
      ...stub({ ...span, out: right }, [ends[1], b], reach, beside).map(named(link, true)),
    ];
  });
  return [...lines, ...stubs, ...loops.flatMap(loop)];
}

/** How far the two lines of a cable are moved sideways: bundles stand evenly about the middle. */
function offsets({ nth, of, ends }: Span, gap: number): [number, number] {
  // From the other end right is left: cables of a bundle keep their order whoever is `a`.
  const turn = ends[0].node < ends[1].node ? 1 : -1;
  const middle = turn * (nth - (of - 1) / 2) * 2 * gap;
  return [middle + gap / 2, middle - gap / 2];
}

/** Where a line that leaves a box sideways of its middle crosses the edge of the box. */
function edge({ width, height }: Box, middle: Point, aside: Point, out: Point): Point {
  const reach = (half: number, place: number, way: number) =>
    Math.abs(way) < 1e-6 ? Infinity : (half * Math.sign(way) - place) / way;
  const far = Math.min(reach(width / 2, aside.x, out.x), reach(height / 2, aside.y, out.y));
  const by = far + 0.5;
  return { x: middle.x + aside.x + out.x * by, y: middle.y + aside.y + out.y * by };
}

function twoLines(span: Span, gap: number): Line[] {
  const { link, ends, a, b, out } = span;
  const back = { x: -out.x, y: -out.y };
  return offsets(span, gap).map((offset, i): Line => {
    // The right-hand side of a→b, y pointing down.
    const aside = { x: -out.y * offset, y: out.x * offset };
    const [from, to] = [edge(ends[0], a, aside, out), edge(ends[1], b, aside, back)];
    const way = i === 0 ? "forward" : "backward";
    const place = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
    return { link, way, ...place, stub: false, room: roomIn(gap) };
  });
}

/** Most width of a line beside another. */
const roomIn = (gap: number) => Math.max(0.6, gap - 0.6);

type Place = Pick<Line, "x1" | "y1" | "x2" | "y2" | "room">;

/** The two lines of a cable that is drawn only where it leaves a box. */
function stub(span: Span, [box, middle]: [Box, Point], reach: number, gap: number): Place[] {
  const { out } = span;
  return offsets({ ...span, ends: [box, box] }, gap).map((offset) => {
    const aside = { x: -out.y * offset, y: out.x * offset };
    const from = edge(box, middle, aside, out);
    const to = { x: from.x + out.x * reach, y: from.y + out.y * reach };
    return { x1: from.x, y1: from.y, x2: to.x, y2: to.y, room: roomIn(gap) };
  });
}

const named = (link: number, swapped: boolean) => (place: Place, i: number): Line => {
  return { link, way: (i === 0) !== swapped ? "forward" : "backward", ...place, stub: true };
};

/** A cable with both ends in one switch: a roof on it, one side for each direction. */
function loop({ link, ends: [box], nth, of }: Span): Line[] {
  const pitch = Math.min(16, box.width / of);
  const x = box.x + box.width / 2 + (nth - (of - 1) / 2) * pitch;
  const [half, top] = [pitch * 0.32, box.y - Math.min(12, pitch)];
  const room = roomIn(half);
  const sides = [
    { way: "forward" as const, x1: x - half, y1: box.y, x2: x, y2: top },
    { way: "backward" as const, x1: x, y1: top, x2: x + half, y2: box.y },
  ];
  return sides.map((side) => ({ link, ...side, stub: false, room }));
}
