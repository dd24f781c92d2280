/** What the map is drawn with, in CSS pixels. */
import { clamp, shortNames, switchNames, type SwitchLinks } from "./fabric-links";

/** A switch. */
export interface Box {
  node: number;
  x: number;
  y: number;
  width: number;
  height: number;
  label: string;
}

/** A cable between switches, or one lane or one stub of it. */
export interface Line {
  link: number;
  /** Direction it stands for; `both` is coloured by the direction the reader chose. */
  way: "forward" | "backward" | "both";
  x1: number;
  y1: number;
  x2: number;
  y2: number;
  /** Drawn only in part: the cable goes on elsewhere. */
  stub: boolean;
  /** Most width it may have without covering the line beside it. */
  room?: number;
}

/** A bar whose length is the share of its worst cable. */
export interface Bar {
  links: number[];
  /** The host of a single cable, or the switch of a bundle. */
  node: number;
  /** What the cables are, for a bundle: "up-links". */
  noun: string;
  x: number;
  y: number;
  width: number;
  /** Length at a share of 1; negative grows upwards. */
  length: number;
}

/** Words beside a row of the map. */
export interface Caption {
  x: number;
  y: number;
  text: string;
  /** It names a group of switches and has its middle at x; else it begins there. */
  group?: boolean;
}

/** The whole map. */
export interface Layout {
  width: number;
  height: number;
  boxes: Box[];
  lines: Line[];
  bars: Bar[];
  captions: Caption[];
  /** Each cable is drawn as two lines, one per direction. */
  lanes: boolean;
  /** Cables are gathered into bars. */
  gathered: boolean;
  /** Per link: in a tree, whether a→b leads up. */
  forwardIsUp: boolean[];
}

/** A block of bars below a switch, at most `span` wide; returns how much height it takes. */
export function hangHosts(
  bars: Bar[],
  links: SwitchLinks,
  node: number,
  place: { center: number; top: number; span: number; length: number },
): number {
  const hosts = links.hosts[node] ?? [];
  if (hosts.length === 0) return 0;
  const pitch = clamp(place.span / hosts.length, 3, 11);
  const rows = Math.ceil(hosts.length / Math.max(1, Math.floor(place.span / pitch + 0.01)));
  const perRow = Math.ceil(hosts.length / rows);
  const rowHeight = place.length + 4;
  hosts.forEach(({ link, host }, i) => {
    const row = Math.floor(i / perRow);
    const inRow = Math.min(perRow, hosts.length - row * perRow);
    const x = place.center + ((i % perRow) - (inRow - 1) / 2) * pitch;
    const y = place.top + row * rowHeight;
    const width = Math.min(6, pitch - 1);
    bars.push({ links: [link], node: host, noun: "", x, y, width, length: place.length });
  });
  return rows * rowHeight;
}

/** Boxes' labels: whole words, else what tells switches of a row apart, or "" where none fits. */
export function labelsThatFit(names: string[], room: number): string[] {
  const fits = (labels: string[]) => labels.every((label) => label.length * 6.4 + 2 <= room);
  return [switchNames(names), shortNames(names)].find(fits) ?? names.map(() => "");
}
