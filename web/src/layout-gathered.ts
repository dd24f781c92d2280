/** A large fabric: no cable is drawn for itself, a pair of bars stands for those of a switch. */
import type { Fabric } from "./data";
import { clamp, forwardIsUp, rowNoun, rowsOfTree, type SwitchLinks } from "./fabric-links";
import type { Bar, Box, Caption, Layout } from "./fabric-marks";

const BAR = 22;
const AXIS = 3;
/** Room below the bars of a row, for the name of a hot receiver. */
const BELOW = 16;
/** Room above the bars of a row, for the names of groups. */
const TITLE = 15;

/** One row of the map: switches, and what the bars above and below the axis gather. */
interface Band {
  title: string;
  switches: number[];
  above: { noun: string; links: (node: number) => number[] };
  below: { noun: string; links: (node: number) => number[] };
  /** The first switch of each group, with what the group is called and how many it has. */
  groups: Map<number, { name: string; size: number }>;
}

/** Lays out a fabric with more cables than can be told apart. */
export function gatheredLayout(fabric: Fabric, links: SwitchLinks, width: number): Layout {
  const up = forwardIsUp(fabric);
  const isTree = fabric.structure === "tree";
  const bands = isTree ? treeBands(fabric, links, up) : [planeBand(fabric, links)];
  const [boxes, bars, captions]: [Box[], Bar[], Caption[]] = [[], [], []];
  let y = 4;
  for (const band of bands) {
    captions.push({ x: 0, y: y + 10, text: band.title });
    y += 20;
    const pitch = clamp(width / band.switches.length, pitchMin(band), 26);
    const perRow = Math.max(1, Math.floor(width / pitch));
    const title = band.groups.size > 0 ? TITLE : 0;
    const rowHeight = title + 2 * BAR + AXIS + BELOW;
    let [column, row] = [0, 0];
    for (const node of band.switches) {
      const group = band.groups.get(node);
      // Groups stand apart, and whole in a row where they can.
      if (group && column > 0) column += 1;
      if (column >= perRow || (group && column > 0 && column + group.size > perRow)) {
        [column, row] = [0, row + 1];
      }
      const x = column * pitch;
      const middle = y + row * rowHeight + title + BAR;
      if (group) captions.push({ x, y: middle - BAR - 4, text: group.name });
      column += 1;
      const wide = pitch - 1.5;
      boxes.push({ node, x, y: middle, width: wide, height: AXIS, label: "" });
      const bar = { node, x: x + wide / 2, width: Math.max(2, wide - 1) };
      const { above, below } = band;
      bars.push({ ...bar, links: above.links(node), noun: above.noun, y: middle, length: -BAR });
      bars.push({
        ...bar,
        links: below.links(node),
        noun: below.noun,
        y: middle + AXIS,
        length: BAR,
      });
    }
    y += (row + 1) * rowHeight + 14;
  }
  return {
    width,
    height: y,
    boxes,
    lines: [],
    bars: bars.filter((bar) => bar.links.length > 0),
    captions,
    lanes: false,
    gathered: true,
    forwardIsUp: isTree ? up : fabric.links.map(() => true),
  };
}

/** Least distance between switches: the names of groups have room above them. */
function pitchMin(band: Band): number {
  const needs = [...band.groups.values()].map(({ name, size }) => (name.length * 6.2) / size);
  return clamp(Math.max(7, ...needs), 7, 26);
}

function treeBands(fabric: Fabric, links: SwitchLinks, up: boolean[]): Band[] {
  const rows = rowsOfTree(fabric, links.switches);
  const leads = (node: number, upwards: boolean) =>
    (links.all[node] ?? []).filter((link) => {
      const fromHere = fabric.links[link]?.a === node;
      return (fromHere === up[link]) === upwards;
    });
  return rows.map((switches, r) => {
    const lowest = r === rows.length - 1;
    const below = lowest ? "links to hosts" : "down-links";
    const bars = r === 0 ? `bars: ${below}` : `bars up: up-links, bars down: ${below}`;
    return {
      title: `${switches.length} ${rowNoun(r, rows.length)} switches — ${bars}`,
      switches,
      above: { noun: "up-links", links: (node) => leads(node, true) },
      below: { noun: below, links: (node) => leads(node, false) },
      groups: new Map(),
    };
  });
}

function planeBand(fabric: Fabric, links: SwitchLinks): Band {
  const trunk = new Set(links.trunks);
  const place = (node: number) => fabric.nodes[node] ?? { x: 0, y: 0 };
  const group = (node: number) => fabric.nodes[node]?.group ?? -1;
  const grouped = (fabric.groups ?? []).length > 0;
  const switches = [...links.switches].sort((p, q) =>
    grouped
      ? group(p) - group(q) || p - q
      : place(p).y - place(q).y || place(p).x - place(q).x || p - q,
  );
  const groups: Band["groups"] = new Map();
  (fabric.groups ?? []).forEach((name, index) => {
    const own = switches.filter((node) => group(node) === index);
    const [first] = own;
    if (first !== undefined) groups.set(first, { name, size: own.length });
  });
  const order = grouped ? "group by group" : "row by row";
  return {
    title: `${switches.length} switches, ${order} — bars up: links to switches, down: to hosts`,
    groups,
    switches,
    above: {
      noun: "links to switches",
      links: (node) => (links.all[node] ?? []).filter((link) => trunk.has(link)),
    },
    below: {
      noun: "links to hosts",
      links: (node) => (links.hosts[node] ?? []).map(({ link }) => link),
    },
  };
}
