/** A large fabric: no cable is drawn for itself, a pair of bars stands for those of a switch. */
import type { Fabric } from "./data";
import { clamp, forwardIsUp, rowNoun, rowsOfTree, type SwitchLinks } from "./fabric-links";
import type { Bar, Box, Caption, Layout } from "./fabric-marks";

const BAR = 22;
const AXIS = 3;

/** One row of the map: switches, and what the bars above and below the axis gather. */
interface Band {
  title: string;
  switches: number[];
  above: { noun: string; links: (node: number) => number[] };
  below: { noun: string; links: (node: number) => number[] };
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
    const pitch = clamp(width / band.switches.length, 7, 26);
    const perRow = Math.max(1, Math.floor(width / pitch));
    const rowHeight = 2 * BAR + AXIS + 9;
    band.switches.forEach((node, i) => {
      const x = (i % perRow) * pitch;
      const middle = y + BAR + Math.floor(i / perRow) * rowHeight;
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
    });
    y += Math.ceil(band.switches.length / perRow) * rowHeight + 14;
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
    };
  });
}

function planeBand(fabric: Fabric, links: SwitchLinks): Band {
  const trunk = new Set(links.trunks);
  const place = (node: number) => fabric.nodes[node] ?? { x: 0, y: 0 };
  const switches = [...links.switches].sort(
    (p, q) => place(p).y - place(q).y || place(p).x - place(q).x || p - q,
  );
  return {
    title: `${switches.length} switches, row by row — bars up: links to switches, down: to hosts`,
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
