/** A tree, cable by cable: spines on top, hosts as bars under their leaf. */
import type { Fabric } from "./data";
import { clamp, forwardIsUp, rowNoun, rowsOfTree, type SwitchLinks } from "./fabric-links";
import {
  hangHosts,
  labelsThatFit,
  type Bar,
  type Box,
  type Layout,
  type Line,
} from "./fabric-marks";

const BOX_HEIGHT = 17;
const BAR_LENGTH = 20;

/** Lays a tree out. */
export function treeLayout(fabric: Fabric, links: SwitchLinks, width: number): Layout {
  const rows = rowsOfTree(fabric, links.switches);
  const left = width < 640 ? 62 : 84;
  const inner = width - left - 4;
  const gap = rows.length <= 2 ? clamp(width * 0.2, 120, 230) : clamp(width * 0.14, 96, 150);
  const boxes: (Box | undefined)[] = fabric.nodes.map(() => undefined);
  const bars: Bar[] = [];
  const captions: Layout["captions"] = [];
  let y = 14;
  rows.forEach((row, r) => {
    const pitch = inner / row.length;
    const boxWidth = clamp(pitch * 0.78, 4, 72);
    const labels = labelsThatFit(
      row.map((node) => fabric.nodes[node]?.name ?? ""),
      boxWidth,
    );
    let below = 0;
    row.forEach((node, i) => {
      const center = left + (i + 0.5) * pitch;
      const label = labels[i] ?? "";
      const box = { node, x: center - boxWidth / 2, y, width: boxWidth, height: BOX_HEIGHT, label };
      boxes[node] = box;
      const place = { center, top: y + BOX_HEIGHT + 4, span: pitch * 0.86, length: BAR_LENGTH };
      below = Math.max(below, hangHosts(bars, links, node, place));
    });
    captions.push({
      x: 0,
      y: y + 12,
      text: `${row.length} ${plural(rowNoun(r, rows.length), row)}`,
    });
    if (below > 0) {
      const hosts = row.reduce((sum, node) => sum + (links.hosts[node]?.length ?? 0), 0);
      captions.push({
        x: 0,
        y: y + BOX_HEIGHT + 17,
        text: `${hosts} host${hosts === 1 ? "" : "s"}`,
      });
    }
    y += BOX_HEIGHT + below + (r + 1 < rows.length ? gap : 12);
  });
  return {
    width,
    height: y + 8,
    boxes: boxes.filter((box) => box !== undefined),
    lines: fan(fabric, links, boxes),
    bars,
    captions,
    lanes: false,
    gathered: false,
    forwardIsUp: forwardIsUp(fabric),
  };
}

function plural(noun: string, row: number[]): string {
  if (row.length === 1) return noun;
  const known: Record<string, string> = { leaf: "leaves", switch: "switches", middle: "middle" };
  return known[noun] ?? (noun.startsWith("level") ? noun : `${noun}s`);
}

/** Spreads the ends of the cables over the edges of their boxes, in the order of the far end. */
function fan(fabric: Fabric, links: SwitchLinks, boxes: (Box | undefined)[]): Line[] {
  const ends = new Map<string, number>();
  for (const box of boxes) {
    if (!box) continue;
    const far = (link: number) => {
      const ends = fabric.links[link];
      return boxes[ends?.a === box.node ? ends.b : (ends?.a ?? -1)];
    };
    const trunks = (links.all[box.node] ?? []).filter((link) => far(link) !== undefined);
    for (const up of [true, false]) {
      const side = trunks.filter((link) => (far(link)?.y ?? 0) < box.y === up);
      side.sort((p, q) => (far(p)?.x ?? 0) - (far(q)?.x ?? 0) || p - q);
      side.forEach((link, i) => {
        ends.set(`${link}/${box.node}`, box.x + ((i + 0.5) / side.length) * box.width);
      });
    }
  }
  return links.trunks.flatMap((link): Line[] => {
    const cable = fabric.links[link];
    const a = cable && boxes[cable.a];
    const b = cable && boxes[cable.b];
    if (!a || !b) return [];
    const x1 = ends.get(`${link}/${a.node}`) ?? a.x;
    const x2 = ends.get(`${link}/${b.node}`) ?? b.x;
    const edge = (box: Box, other: Box) => (other.y < box.y ? box.y : box.y + box.height);
    return [{ link, way: "both", x1, y1: edge(a, b), x2, y2: edge(b, a), stub: false }];
  });
}
