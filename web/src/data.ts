/**
 * The data contract of the report page, schema `clearlane-report/1`.
 *
 * `crates/lab` writes this as JSON in the place of the template's data placeholder, with every
 * `<` written as `\u003c`. Units are part of a field's name or stated beside it. Shares are 0..1.
 */

import type { Observed } from "./data-observed";
import type { Program, WaitingRank } from "./data-programs";
import type { Fact, PublishedRow } from "./data-tables";
import type { Verdict } from "./data-verdict";

export type { Fact, PublishedRow };

/** How a run ended. Anything but `complete` is shown as a warning. */
export type Status = Bad | "complete" | "partial";
type Bad = "deadlock" | "not ended" | "not converged" | "starved";

/** The role of a flow: the cause of congestion, one that suffers without being it, the rest. */
export type FlowClass = "hot" | "victim" | "background";

/** One direction of a link: `forward` is a→b, `backward` is b→a. */
export type Direction = "forward" | "backward";

/** Everything one report shows. */
export interface Report {
  schema: "clearlane-report/1";
  /** The experiment's title, one line. */
  title: string;
  /** The finding in one sentence. */
  summary: string;
  /** What it says in a few lines, the cause first; absent unless somebody has made that of it. */
  verdict?: Verdict;
  /** Version of Clearlane that made the results. */
  version: string;
  /** The command line that makes the same results again. */
  command: string;
  /** Every seed that was run, in order. */
  seeds: number[];
  status: Status;
  /**
   * A flow or a host suffers if it is this many times slower than without the hot flows, or, where
   * that was not run, gets less than one part in so many of what its host offers.
   */
  suffers_from: number;
  headline: Headline;
  /** When programs were complete; absent without any. */
  programs?: Program[];
  /** Published numbers against ours; empty hides the section. */
  published: PublishedRow[];
  /** Fabric summary, routing engine, reachability, deadlock freedom, duration, warm-up. */
  facts: Fact[];
  /** Things a careful reader should know about this run, one sentence each. */
  oddities: string[];
  /** Empty for a sweep. */
  fabric: Fabric;
  /** One entry per variant, in the order of the experiment file; none for a sweep. */
  variants: Variant[];
  /** Set where what is shown was observed and not run. */
  observed?: Observed;
  /** Figures over parameters that were varied, or null. */
  sweep?: Sweep | null;
  /** The variants as points over the load they offer, or null if they do not differ in it. */
  curves?: Sweep | null;
  /** What the model leaves out, one sentence each. */
  not_modelled: string[];
}

/** The table of results: a row per variant, a column per quantity. */
export interface Headline {
  columns: HeadlineColumn[];
  rows: HeadlineRow[];
}

/** A variant's row of the table. */
export interface HeadlineRow {
  variant: string;
  /** What is different in it, in one line. */
  summary?: string;
  cells: Record<string, Cell>;
  /** Seeds that had not settled when they ended. */
  unsettled?: number[];
}

/** One measured quantity. */
export interface HeadlineColumn {
  /** Looks a cell up in a row. */
  key: string;
  label: string;
  /** Unit as printed in the header, "" for a pure number. */
  unit: string;
  /** Which end of the scale is better; null marks no cell. */
  better: "high" | "low" | null;
  /** What it measures, in one line. */
  explained?: string;
}

/** A mean over the seeds, in the unit of its column. */
export interface Cell {
  /** null: not measured. */
  value: number | null;
  /** Half-width of the 95 % confidence interval over the seeds; null with one seed. */
  interval: number | null;
  /** False if it was still changing when a run ended. */
  converged?: boolean;
  /** False if it has no steady value: traffic that is not served waits longer and longer. */
  steady?: boolean;
}

/** The cables, laid out for drawing. */
export interface Fabric {
  structure: "tree" | "grid" | "graph";
  /** Number of switch levels, for a tree. */
  levels?: number;
  /** Switches per dimension, for a grid. */
  dims?: number[];
  /** Names of the groups of switches that a graph is drawn by. */
  groups?: string[];
  nodes: FabricNode[];
  links: FabricLink[];
}

/** A switch or the adapter of a server. */
export interface FabricNode {
  name: string;
  kind: "switch" | "host";
  /**
   * Position, 0..1, x to the right and y downwards. In a tree only the order counts: levels are
   * stacked, leaves lowest, and spread evenly by x. Hosts are drawn at their switch, sorted by
   * x, then y.
   */
  x: number;
  y: number;
  /** Level of a switch in a tree, leaves 0; equal numbers share a row. Hosts have none. */
  level?: number;
  /** Index in the fabric's `groups`. */
  group?: number;
}

/** A cable between the nodes with these indices. */
export interface FabricLink {
  a: number;
  b: number;
  /** Data rate of one direction, Gb/s. */
  gbps: number;
  /** As an administrator would say it, such as "leaf-01/P3 – spine-02/P1". */
  name: string;
}

/** What one variant did. Arrays under `links` are indexed like `fabric.links`. */
export interface Variant {
  name: string;
  /** The seed of its time series and flows; null if it was not run. */
  seed?: number | null;
  links: {
    /** Utilisation a→b, mean over the measured part, 0..1. */
    forward: number[];
    /** Utilisation b→a, 0..1. */
    backward: number[];
    /** Share of the measured time with data for a→b but no credits, 0..1. */
    wait_forward: number[];
    /** The same for b→a. */
    wait_backward: number[];
  };
  /** Indices in `fabric.nodes` of the hot receivers. */
  hosts_hot: number[];
  series: SeriesSet;
  /** Most loaded or most blocked directions, worst first. */
  worst_links: WorstLink[];
  /** The cycle of buffers that wait for each other, or null. */
  deadlock: DeadlockHop[] | null;
  /** Ranks that wait for operations that never complete, the first of them; absent without any. */
  waiting?: WaitingRank[];
  /** How many there are. */
  waiting_all?: number;
  /** What happened over time in the first seed; null if it was not run. */
  over_time?: OverTime | null;
  /** What congestion mechanisms did in the first seed; absent without any. */
  control?: Control | null;
}

/** What the mechanisms of a variant did, sampled like `series`. */
export interface Control {
  /** Their names, that of the one which decides when packets are injected first. */
  mechanisms: string[];
  quantities: ControlQuantity[];
}

/** A quantity of the flows that were notified most. */
export interface ControlQuantity {
  /** With its unit. */
  name: string;
  /** How many digits behind the point say something. */
  decimals: number;
  lines: { name: string; class: FlowClass; values: number[] }[];
}

/**
 * A variant frame by frame. Text that is packed holds little-endian integers, deflated, in base64:
 * a row per channel, switch or flow, a number per frame. A channel is twice its link, one more for
 * b→a.
 */
export interface OverTime {
  /** Length of a frame, µs. */
  dt_us: number;
  frames: number;
  /** First frame of the measured part, and the one after its last. */
  measured: [number, number];
  /** Channels that ever sent or waited. Packed, 4 bytes each. */
  channels: string;
  /** Share of the frame the channel was busy, in 1/255. Packed, 1 byte each. */
  load: string;
  /** Share of the frame it had data and no credits, likewise. */
  wait: string;
  /** What holds it back: 0 nothing, 1 unknown, 2 its receiver, else a channel + 3. 4 bytes each. */
  cause: string;
  /** False if paths, and with them causes, are not known. */
  paths: boolean;
  /** What a reader should know about the paths, one sentence, or null. */
  paths_note?: string | null;
  /** Nodes with a row in `queue`. */
  switches: number[];
  /** Bytes in the switch at the end of the frame, in 1/65535 of the most. 2 bytes each. */
  queue: string;
  queue_bytes_max: number;
  flows: Flows;
}

/** Flows, one value of each list per flow. */
export interface Flows {
  /** How many there were; the lists may hold fewer. */
  total: number;
  /** False if they were too many to be recorded one by one. */
  recorded: boolean;
  /** Nodes. */
  from: number[];
  to: number[];
  /** Index in `series.groups`. */
  group: number[];
  /** Payload over the measured part, Gb/s. */
  gbps: number[];
  /** The same without the hot flows; null where that was not run. */
  alone_gbps: (number | null)[];
  /** What the sender gets of what it offers in the group, 0..1. */
  share: (number | null)[];
  /** Share of the measured frames in which a channel of its path was held back, 0..1. */
  held: number[];
  /** The same of the way its acknowledgements take; 0 for a flow without. */
  acks_held: number[];
  /** The root that held either back most often: a channel. */
  root: (number | null)[];
  /** Channels it crosses; empty if not known. */
  path: number[][];
  /** Payload by frame in 1/65535 of the most. Packed, 2 bytes each. */
  series: string;
  gbps_max: number;
}

/** Figures at the points of a grid of parameters. */
export interface Sweep {
  axes: SweepAxis[];
  /** The first is drawn first. */
  figures: SweepFigure[];
  points: SweepPoint[];
}

/** A parameter that was varied. */
export interface SweepAxis {
  key: string;
  label: string;
  unit: string;
  values: (number | string)[];
}

/** A quantity measured at every point. */
export interface SweepFigure {
  key: string;
  label: string;
  unit: string;
  better: "high" | "low" | null;
}

/** One variant at one place of the grid. */
export interface SweepPoint {
  /** By axis, the index among its values. */
  at: number[];
  variant: string;
  /** By figure, the mean over the seeds; null: not measured. */
  mean: (number | null)[];
  /** By figure, half of the 95 % confidence interval; null with one seed. */
  half_width: (number | null)[];
  converged: boolean;
  /** By figure, false if that figure was still changing. */
  settled?: boolean[];
  /** By figure, false if it has no steady value. */
  steady?: boolean[];
  /** The report of this point, relative to this page. */
  run: string | null;
}

/** Delivered throughput over time; sample i covers `dt_us` from `start_us + i * dt_us`. */
export interface SeriesSet {
  /** Length of a sample, and start of the first one, µs of simulated time. */
  dt_us: number;
  start_us: number;
  /** Flow groups, Gb/s summed over the group. */
  groups: Series[];
  /** Up to 20 named flows; links between switches, in each sample in order of throughput. */
  flows: Series[];
  links?: Series[];
}

/** One line of a chart, Gb/s per sample. */
export interface Series {
  name: string;
  class: FlowClass;
  gbps: number[];
}

/** A link direction worth looking at. */
export interface WorstLink {
  /** Index in `fabric.links`. */
  link: number;
  direction: Direction;
  /** Utilisation, 0..1. */
  load: number;
  /** Share of time with data but no credits, 0..1. */
  wait: number;
  /** What makes it so, one short sentence. */
  why: string;
}

/** One full buffer of a deadlock cycle; it waits for the next, the last for the first. */
export interface DeadlockHop {
  /** Name of the switch, as in `fabric.nodes`. */
  switch: string;
  /** Number of the input port whose buffer it is. */
  port: number;
  /** Virtual lane of the buffer. */
  vl: number;
}

/**
 * Reads the embedded JSON. Throws an Error with one lowercase line if it is not a report, or if an
 * index or array length in it would make the drawing wrong.
 */
export function parseReport(text: string): Report {
  if (text.trimStart().startsWith("__")) {
    throw new Error("this is the empty template: no results were written into it");
  }
  const report = JSON.parse(text) as Report;
  if (report.schema !== "clearlane-report/1") {
    throw new Error(`schema '${report.schema}' is not 'clearlane-report/1'`);
  }
  // A sweep draws no fabric of its own.
  report.fabric ??= { structure: "graph", nodes: [], links: [] };
  const nodes = report.fabric.nodes.length;
  report.fabric.links.forEach((link, i) => {
    checkIndex(link.a, nodes, `fabric.links[${i}].a`);
    checkIndex(link.b, nodes, `fabric.links[${i}].b`);
  });
  if (report.variants.length === 0 && !report.sweep) {
    throw new Error("variants is empty and there is no sweep; one is needed");
  }
  report.variants.forEach((variant, i) => checkVariant(report, variant, `variants[${i}]`));
  return report;
}

function checkVariant(report: Report, variant: Variant, place: string): void {
  const links = report.fabric.links.length;
  for (const [key, values] of Object.entries(variant.links)) {
    if (values.length !== links) {
      const found = `${place}.links.${key} has ${values.length} values`;
      throw new Error(`${found} but the fabric has ${links} links`);
    }
  }
  const nodes = report.fabric.nodes.length;
  variant.hosts_hot.forEach((host) => checkIndex(host, nodes, `${place}.hosts_hot`));
  variant.worst_links.forEach((row) => checkIndex(row.link, links, `${place}.worst_links`));
}

function checkIndex(index: number, count: number, place: string): void {
  if (!Number.isInteger(index) || index < 0 || index >= count) {
    throw new Error(`${place} is ${index}, outside 0..${count - 1}`);
  }
}
