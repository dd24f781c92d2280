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

/** Extent of the positions, and how many columns and rows of them there are. */
export function distinctPlaces(nodes: FabricNode[]) {
  const count = (values: number[]) => new Set(values.map((v) => Math.round(v * 1e4))).size;
  const xs = nodes.map((node) => node.x);
  const ys = nodes.map((node) => node.y);
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return {
    x,
    y,
    width: Math.max(...xs) - x,
    height: Math.max(...ys) - y,
    columns: Math.max(1, count(xs)),
    rows: Math.max(1, count(ys)),
  };
}

function lanes(fabric: Fabric, links: SwitchLinks, boxes: Box[], pitch: number): Line[] {
  const centers = new Map<number, Point>();
  const taken = new Set<string>();
  for (const box of boxes) {
    const center = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    centers.set(box.node, center);
    taken.add(spot(center));
  }
  const inset = (boxes[0]?.width ?? 0) / 2 + 1;
  const parallel = new Map<string, number>();
  return links.trunks.flatMap((link): Line[] => {
    const cable = fabric.links[link];
    const a = cable && centers.get(cable.a);
    const b = cable && centers.get(cable.b);
    if (!cable || !a || !b) return [];
    const pair = `${Math.min(cable.a, cable.b)}/${Math.max(cable.a, cable.b)}`;
    const nth = parallel.get(pair) ?? 0;
    parallel.set(pair, nth + 1);
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const u = { x: (b.x - a.x) / length, y: (b.y - a.y) / length };
    // Further cables of a pair run beside the first, in turn on either side of it.
    const side = (nth % 2 === 0) === cable.a < cable.b ? 1 : -1;
    const shift = side * Math.ceil(nth / 2) * 2 * LANE_GAP;
    if (length <= pitch * 1.5) {
      const from = { x: a.x + u.x * inset, y: a.y + u.y * inset };
      const to = { x: b.x - u.x * inset, y: b.y - u.y * inset };
      return twoLanes(link, from, to, shift, false);
    }
    const stubs = [stub(a, { x: -u.x, y: -u.y }), stub(b, u)];
    return stubs.flatMap(([from, to], end) =>
      // Seen from b the way out is b→a, so the roles of the lanes swap.
      twoLanes(link, from, to, shift, true, end === 1),
    );
  });

  /** From a box outwards; slanted where a neighbour sits straight ahead. */
  function stub(center: Point, out: Point): [Point, Point] {
    const ahead = { x: center.x + out.x * pitch, y: center.y + out.y * pitch };
    const turn = taken.has(spot(ahead)) ? Math.PI / 4 : 0;
    const u = {
      x: out.x * Math.cos(turn) - out.y * Math.sin(turn),
      y: out.x * Math.sin(turn) + out.y * Math.cos(turn),
    };
    const end = inset + pitch * 0.2;
    return [
      { x: center.x + u.x * inset, y: center.y + u.y * inset },
      { x: center.x + u.x * end, y: center.y + u.y * end },
    ];
  }
}

function spot(point: Point): string {
  return `${Math.round(point.x / 4)}/${Math.round(point.y / 4)}`;
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
