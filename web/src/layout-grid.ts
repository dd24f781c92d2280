/** A grid, cable by cable, on the positions given in the data. */
import type { Fabric, FabricNode } from "./data";
import { clamp, switchNames, type SwitchLinks } from "./fabric-links";
import { hangHosts, type Bar, type Box, type Layout } from "./fabric-marks";
import { lanes, LANE_GAP, type Point } from "./map-lanes";

/** Height that a map should have where it can. */
const HEIGHT = 440;
/** Pitch from which on a name of three letters fits into a switch. */
const NAMED_FROM = 72;

/** Lays a grid out. Cables much longer than its pitch become stubs. */
export function gridLayout(fabric: Fabric, links: SwitchLinks, width: number): Layout {
  const nodes = links.switches.flatMap((node) => fabric.nodes[node] ?? []);
  const spread = distinctPlaces(nodes);
  // Low enough for the first screen, as long as names of three letters fit.
  const low = clamp(HEIGHT / spread.rows, NAMED_FROM, 92);
  const pitch = Math.min(low, (width - 16) / (spread.columns + 0.6));
  const inner = pitch * (spread.columns - 1);
  const down = pitch * (spread.rows - 1);
  const top = pitch * 0.62;
  const left = (width - inner) / 2;
  const side = clamp(pitch * 0.3, 5, 26);
  const labels = switchNames(nodes.map((node) => node.name));
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
    lines: lanes(fabric, links, boxes, { pitch, gap: LANE_GAP }),
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
