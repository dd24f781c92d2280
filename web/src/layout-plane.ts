/** A grid or any other graph, cable by cable, on the positions given in the data. */
import type { Fabric, FabricNode } from "./data";
import { clamp, shortNames, type SwitchLinks } from "./fabric-links";
import { hangHosts, type Bar, type Box, type Layout, type Line } from "./fabric-marks";

const LANE_GAP = 5.2;

interface Point {
  x: number;
  y: number;
}

/** Lays a grid or a graph out. Cables much longer than the pitch of a grid become stubs. */
export function planeLayout(fabric: Fabric, links: SwitchLinks, width: number): Layout {
  const nodes = links.switches.flatMap((node) => fabric.nodes[node] ?? []);
  const spread = distinctPlaces(nodes);
  const isGrid = fabric.structure === "grid";
  const pitch = Math.min(isGrid ? 92 : 140, (width - 16) / (spread.columns + 0.6));
  const inner = pitch * (spread.columns - 1);
  const down = isGrid ? pitch * (spread.rows - 1) : clamp(width * 0.5, 220, 560);
  const top = pitch * 0.62;
  const left = (width - inner) / 2;
  const side = clamp(pitch * 0.3, 5, 26);
  const labels = shortNames(nodes.map((node) => node.name));
  const fits = Math.max(0, ...labels.map((label) => label.length)) * 6.4 + 2 <= side;
  const at = (node: FabricNode): Point => ({
    x: left + ((node.x - spread.x) / (spread.width || 1)) * inner,
    y: top + ((node.y - spread.y) / (spread.height || 1)) * down,
  });
  const boxes: Box[] = links.switches.map((node, i) => {
    const { x, y } = at(fabric.nodes[node] ?? { name: "", kind: "switch", x: 0, y: 0 });
    const label = fits ? (labels[i] ?? "") : "";
    return { node, x: x - side / 2, y: y - side / 2, width: side, height: side, label };
  });
  const bars: Bar[] = [];
  for (const box of boxes) {
    const place = {
      center: box.x + box.width + pitch * 0.16,
      top: box.y + box.height + 2,
      span: pitch * 0.3,
      length: clamp(pitch * 0.2, 6, 16),
    };
    hangHosts(bars, links, box.node, place);
  }
  return {
    width,
    height: top * 2 + down + 10,
    boxes,
    lines: lanes(fabric, links, boxes, isGrid ? pitch : Infinity),
    bars,
    captions: [],
    lanes: true,
    gathered: false,
    forwardIsUp: fabric.links.map(() => true),
  };
}

/** Extent of the positions, and how many columns and rows of the closest spacing fit into it. */
function distinctPlaces(nodes: FabricNode[]) {
  const across = extent(nodes.map((node) => node.x));
  const down = extent(nodes.map((node) => node.y));
  return {
    x: across.low,
    y: down.low,
    width: across.size,
    height: down.size,
    columns: across.count,
    rows: down.count,
  };
}

function extent(values: number[]): { low: number; size: number; count: number } {
  const sorted = [...values].sort((p, q) => p - q);
  const [low = 0] = sorted;
  const size = (sorted[sorted.length - 1] ?? 0) - low;
  let gap = size;
  sorted.forEach((value, i) => {
    const step = value - (sorted[i - 1] ?? value);
    // Positions closer than a hundredth are one column that was rounded.
    if (step > 0.01) gap = Math.min(gap, step);
  });
  return { low, size, count: size > 0 ? Math.min(60, Math.round(size / gap)) + 1 : 1 };
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

function spans(fabric: Fabric, links: SwitchLinks, boxes: Box[]): Span[] {
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
    const shift = side * Math.ceil(nth / 2) * 2 * LANE_GAP;
    return [{ link, ends: [cable.a, cable.b], a, b, out, length, shift }];
  });
}

function lanes(fabric: Fabric, links: SwitchLinks, boxes: Box[], pitch: number): Line[] {
  const inset = (boxes[0]?.width ?? 0) / 2 + 1;
  const all = spans(fabric, links, boxes);
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
    twoLanes(link, along(a, out, inset), along(b, out, -inset), shift, false),
  );
  // The ends of wrapping cables point away from each other, as if going round the back.
  const stubs = long.flatMap(({ link, ends, a, b, out, shift }) => {
    const reach = inset + pitch * 0.2;
    const left = exits.take(ends[0], { x: -out.x, y: -out.y });
    const right = exits.take(ends[1], out);
    return [
      ...twoLanes(link, along(a, left, inset), along(a, left, reach), shift, true),
      // Seen from b the way out is b→a, so the roles of the lanes swap.
      ...twoLanes(link, along(b, right, inset), along(b, right, reach), shift, true, true),
    ];
  });
  return [...lines, ...stubs];
}

function twoLanes(
  link: number,
  from: Point,
  to: Point,
  shift: number,
  stub: boolean,
  swapped = false,
): Line[] {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  // The right-hand side of from→to, y pointing down.
  const right = { x: -(to.y - from.y) / length, y: (to.x - from.x) / length };
  return ([1, -1] as const).map((side) => {
    const offset = (side * LANE_GAP) / 2 + shift;
    const dx = right.x * offset;
    const dy = right.y * offset;
    const way = (side === 1) !== swapped ? "forward" : "backward";
    return { link, way, x1: from.x + dx, y1: from.y + dy, x2: to.x + dx, y2: to.y + dy, stub };
  });
}
