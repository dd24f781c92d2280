/** A graph that is neither a tree nor a grid, cable by cable: switches in their groups. */
import type { Fabric } from "./data";
import { clamp, shortNames, type SwitchLinks } from "./fabric-links";
import { hangHosts, type Bar, type Box, type Caption, type Layout } from "./fabric-marks";
import { lanes, LANE_GAP, type Point } from "./map-lanes";

/** Height over width, as `crates/lab/src/report/layout.rs` has it: rings stay round. */
const ASPECT = 0.6;
const BOX_HEIGHT = 15;
const BAR_LENGTH = 8;
/** Cables from which on their lanes stand nearer to each other. */
const CROWDED = 150;
/** Radius of the ring of a group in which its name has room, CSS pixels. */
const ROOM_INSIDE = 30;

/** A way to draw switches: how wide, and what is in them. */
interface Style {
  width: number;
  height: number;
  labels: string[];
}

/** Lays a graph out on the positions given in the data. */
export function graphLayout(fabric: Fabric, links: SwitchLinks, width: number): Layout {
  const margin = clamp(width * 0.04, 18, 44);
  const [inner, top] = [width - 2 * margin, 22];
  const down = inner * ASPECT;
  const places = links.switches.map((node): Point => {
    const { x, y } = fabric.nodes[node] ?? { x: 0, y: 0 };
    return { x: margin + x * inner, y: top + y * down };
  });
  const hosts = Math.max(0, ...links.switches.map((node) => links.hosts[node]?.length ?? 0));
  const style = styleThatFits(fabric, links, places, hosts);
  const boxes: Box[] = links.switches.map((node, i) => {
    const { x, y } = places[i] ?? { x: 0, y: 0 };
    const { width: wide, height } = style;
    const label = style.labels[i] ?? "";
    return { node, x: x - wide / 2, y: y - height / 2, width: wide, height, label };
  });
  const bars: Bar[] = [];
  for (const { node, x, y, width: wide, height } of boxes) {
    const place = { center: x + wide / 2, top: y + height + 2, span: wide, length: BAR_LENGTH };
    hangHosts(bars, links, node, place);
  }
  const gap = links.trunks.length > CROWDED ? LANE_GAP / 2 : LANE_GAP;
  return {
    width,
    height: top + down + below(style.width, hosts) + 24,
    boxes,
    lines: lanes(fabric, links, boxes, { pitch: Infinity, gap }),
    bars,
    captions: names(fabric, boxes),
    lanes: true,
    gathered: false,
    forwardIsUp: fabric.links.map(() => true),
  };
}

/** Height of the bars of so many hosts below a box. */
function below(width: number, hosts: number): number {
  if (hosts === 0) return 0;
  const perRow = Math.max(1, Math.floor(width / clamp(width / hosts, 3, 11)));
  return 2 + Math.ceil(hosts / perRow) * (BAR_LENGTH + 4);
}

/** Whole names where no switch covers another, else what tells them apart in a group, else none. */
function styleThatFits(
  fabric: Fabric,
  links: SwitchLinks,
  places: Point[],
  hosts: number,
): Style {
  const named = links.switches.map((node) => fabric.nodes[node]?.name ?? "");
  const groups = new Map<number, number[]>();
  links.switches.forEach((node, i) => {
    const group = fabric.nodes[node]?.group ?? -1;
    groups.set(group, [...(groups.get(group) ?? []), i]);
  });
  const own = [...named];
  for (const members of groups.values()) {
    const shorts = shortNames(members.map((i) => named[i] ?? ""));
    members.forEach((i, at) => (own[i] = shorts[at] ?? ""));
  }
  for (const labels of [shortNames(named), own]) {
    const longest = Math.max(0, ...labels.map((label) => label.length));
    const width = Math.max(BOX_HEIGHT, longest * 6.4 + 5);
    if (fits(places, width, BOX_HEIGHT + below(width, hosts))) {
      return { width, height: BOX_HEIGHT, labels };
    }
  }
  const sizes = [12, 9, 7, 5];
  const side = sizes.find((size) => fits(places, size, size + below(size, hosts))) ?? 5;
  return { width: side, height: side, labels: named.map(() => "") };
}

/** Whether marks of a size around the places leave each other room. */
function fits(places: Point[], width: number, height: number): boolean {
  return places.every((p, i) =>
    places
      .slice(i + 1)
      .every((q) => Math.abs(p.x - q.x) > width + 3 || Math.abs(p.y - q.y) > height + 2),
  );
}

/** What groups are called: in the middle of their ring where there is room, else above it. */
function names(fabric: Fabric, boxes: Box[]): Caption[] {
  return (fabric.groups ?? []).flatMap((text, group): Caption[] => {
    const own = boxes.filter(({ node }) => fabric.nodes[node]?.group === group);
    if (own.length === 0) return [];
    const xs = own.map((box) => box.x + box.width / 2);
    const ys = own.map((box) => box.y);
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const [high, low] = [Math.min(...ys), Math.max(...ys)];
    const inside = own.length > 2 && Math.min(right - left, low - high) / 2 >= ROOM_INSIDE;
    const tall = own[0]?.height ?? 0;
    const y = inside ? (high + low + tall) / 2 + 6 : high - 5;
    return [{ x: (left + right) / 2, y, text, group: true }];
  });
}
