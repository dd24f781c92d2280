/** An irregular topology, drawn cable by cable: switches in their groups. */
import type { Fabric } from "./data";
import { clamp, switchNames, type SwitchLinks } from "./fabric-links";
import { hangHosts, type Bar, type Box, type Caption, type Layout } from "./fabric-marks";
import { lanes, LANE_GAP, type Point } from "./map-lanes";

/** Height over width, as `crates/lab/src/report/layout.rs` has it: rings stay round. */
const ASPECT = 0.42;
/** Room above the middle of the first switch. */
const TOP = 22;
const BOX_HEIGHT = 15;
const BAR_LENGTH = 8;
/** Hosts of a switch stand in rows at least this wide, below a narrow box too. */
const HOSTS_WIDE = 24;
/** Width of a letter in a box. */
const LETTER = 6.4;
/** Width of a box by its cables to switches, and how much wider than its name that makes it. */
const PER_CABLE = 4;
const WIDER = 60;
/** Letters of the longest name that is written in full. */
const LONGEST = 26;
/** Height of a box from which on a name fits into it. */
const NAMED_FROM = 12;
/** Cables from which on their lanes stand nearer to each other. */
const CROWDED = 150;
/** Radius of the ring of a group in which its name has room, CSS pixels. */
const ROOM_INSIDE = 30;

/** Lays a graph out on the positions given in the data. */
export function graphLayout(fabric: Fabric, links: SwitchLinks, width: number): Layout {
  const boxes = boxesOf(fabric, links, width);
  const bars: Bar[] = [];
  for (const { node, x, y, width: wide, height } of boxes) {
    const span = Math.max(wide, HOSTS_WIDE);
    const place = { center: x + wide / 2, top: y + height + 2, span, length: BAR_LENGTH };
    hangHosts(bars, links, node, place);
  }
  const lowest = Math.max(
    ...boxes.map(({ y, height }) => y + height),
    ...bars.map(({ y, length }) => y + length),
  );
  const gap = links.trunks.length > CROWDED ? LANE_GAP / 2 : LANE_GAP;
  return {
    width,
    // The mark and the name of a hot receiver stand below the last bar.
    height: lowest + 16,
    boxes,
    lines: lanes(fabric, links, boxes, { pitch: Infinity, gap }),
    bars,
    captions: names(fabric, boxes),
    lanes: true,
    gathered: false,
    forwardIsUp: fabric.links.map(() => true),
  };
}

/** Boxes on their places, as wide as the names that fit into them. */
function boxesOf(fabric: Fabric, links: SwitchLinks, width: number): Box[] {
  const [named, own] = namesOf(fabric, links.switches);
  const sideways = Math.max(0, ...named.map(widthFor)) / 2;
  const margin = clamp(sideways + 2, 18, width * 0.1);
  const inner = width - 2 * margin;
  const nodes = links.switches.map((node) => fabric.nodes[node] ?? { x: 0, y: 0 });
  const top = Math.min(1, ...nodes.map(({ y }) => y));
  // What the places leave free above and below is not drawn.
  const places = nodes.map(({ x, y }): Point => {
    return { x: margin + x * inner, y: TOP + (y - top) * inner * ASPECT };
  });
  const hosts = links.switches.map((node) => links.hosts[node]?.length ?? 0);
  const side = sizeThatFits(places, hosts);
  const boxes = links.switches.map((node, i): Box => {
    const { x, y } = places[i] ?? { x: 0, y: 0 };
    return { node, x: x - side / 2, y: y - side / 2, width: side, height: side, label: "" };
  });
  const copies = [named, own].map((names) => {
    const copy = boxes.map((box) => ({ ...box }));
    nameBoxes(copy, names, { hosts, links, width });
    return copy;
  });
  // Whole names, or those within a group where that names more switches.
  const [whole = boxes, short = boxes] = copies;
  const count = (some: Box[]) => some.filter(({ label }) => label).length;
  return count(short) > count(whole) ? short : whole;
}

/** Largest size of boxes that, with the hosts below them, leave each other room. */
function sizeThatFits(places: Point[], hosts: number[]): number {
  const tall = (size: number, i: number) => size + below(size, hosts[i] ?? 0) + 3;
  const sizes = [BOX_HEIGHT, 12, 9, 7, 5];
  const found = sizes.find((size) =>
    places.every((p, i) =>
      places.every((q, j) => {
        if (j === i || q.y < p.y || (q.y === p.y && j < i)) return true;
        return Math.abs(p.x - q.x) > Math.max(size, HOSTS_WIDE) + 3 || q.y - p.y > tall(size, i);
      }),
    ),
  );
  return found ?? 5;
}

/**
 * Widens boxes to their names as long as none touches another: first those with most hosts, then
 * those with most cables.
 */
function nameBoxes(
  boxes: Box[],
  named: string[],
  { hosts, links, width }: { hosts: number[]; links: SwitchLinks; width: number },
): void {
  if ((boxes[0]?.height ?? 0) < NAMED_FROM) return;
  const cables = boxes.map(({ node }) => links.all[node]?.length ?? 0);
  const order = boxes.map((_, i) => i);
  const of = (values: number[], i: number) => values[i] ?? 0;
  order.sort((p, q) => of(hosts, q) - of(hosts, p) || of(cables, q) - of(cables, p) || p - q);
  const reach = boxes.map((box, i) => below(box.width, of(hosts, i)));
  for (const i of order) {
    const [box, name] = [boxes[i], named[i] ?? ""];
    if (!box || !name) continue;
    const middle = box.x + box.width / 2;
    const isFree = (wide: number) => {
      const [left, right] = [middle - wide / 2 - 3, middle + wide / 2 + 3];
      const hits = boxes.some((other, j) => {
        if (j === i || left > other.x + other.width || other.x > right) return false;
        if (box.y > other.y + other.height + of(reach, j) + 2) return false;
        return other.y <= box.y + box.height + of(reach, i) + 2;
      });
      return !hits && left + 3 >= 0 && right - 3 <= width;
    };
    const least = Math.max(box.width, widthFor(name));
    // Where there is room, the lines of its cables do not stand in each other's way.
    const trunks = of(cables, i) - of(hosts, i);
    const wide = [clamp(trunks * PER_CABLE, least, least + WIDER), least].find(isFree);
    if (wide) Object.assign(box, { x: middle - wide / 2, width: wide, label: name });
  }
}

/** Height of the bars of so many hosts below a box. */
function below(width: number, hosts: number): number {
  if (hosts === 0) return 0;
  const span = Math.max(width, HOSTS_WIDE);
  const perRow = Math.max(1, Math.floor(span / clamp(span / hosts, 3, 11) + 0.01));
  return 2 + Math.ceil(hosts / perRow) * (BAR_LENGTH + 4);
}

const widthFor = (name: string) => (name ? name.length * LETTER + 6 : 0);

/** What switches are called by themselves, and by what tells them apart in their group. */
function namesOf(fabric: Fabric, switches: number[]): [string[], string[]] {
  const named = switches.map((node) => fabric.nodes[node]?.name ?? "");
  const cut = (name: string) =>
    name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
  const own = [...named];
  (fabric.groups ?? []).forEach((_, group) => {
    const members = switches.flatMap((node, i) => (fabric.nodes[node]?.group === group ? i : []));
    const shorts = switchNames(members.map((i) => named[i] ?? ""));
    members.forEach((i, at) => (own[i] = shorts[at] ?? ""));
  });
  return [switchNames(named).map(cut), own.map(cut)];
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
