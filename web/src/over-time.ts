/** A variant over time, unpacked: channels, queues, flows, frame by frame. */
import type { OverTime, Variant } from "./data";
import { unpackBytes, unpackWhole, unpackWords } from "./packed";

/** A direction of a link as a number: twice the link, one more for b→a. */
export type Channel = number;

/** A flow of the report. */
export interface Flow {
  /** Its place among the flows of the variant. */
  index: number;
  from: number;
  to: number;
  /** Index in `series.groups`. */
  group: number;
  gbps: number;
  /** Without the hot flows; null where that was not run. */
  aloneGbps: number | null;
  /** What the sender gets of what it offers, 0..1. */
  share: number | null;
  /** Share of the measured time in which its path was held back, 0..1. */
  held: number;
  /** The same of the way back, which its acknowledgements take. */
  acksHeld: number;
  /** What held it back most often. */
  root: Channel | null;
  path: Channel[];
}

/** The channel from a to b of a link, or the other. */
export function channelOf(link: number, direction: "forward" | "backward"): Channel {
  return 2 * link + (direction === "forward" ? 0 : 1);
}

/** One variant over time. Frames are counted from 0; `null` is the whole run. */
export class History {
  readonly frames: number;
  readonly dtUs: number;
  readonly flows: Flow[];
  /** Flows there were; `flows` may hold fewer. */
  readonly flowsTotal: number;
  readonly flowsRecorded: boolean;
  readonly hasPaths: boolean;
  /** Where paths are not those that packets took, or not known. */
  readonly pathsNote: string | null;
  readonly measured: [number, number];
  readonly queueMax: number;
  /** Channels that ever sent or waited, by row. */
  readonly channels: Uint32Array;
  /** By channel, what holds it back; rows as in `channels`. See `congestion-tree.ts`. */
  readonly causes: Uint32Array;
  private readonly rows: Int32Array;
  private readonly queueRows = new Map<number, number>();
  private readonly load: Uint8Array;
  private readonly wait: Uint8Array;
  private readonly queues: Uint16Array;
  private readonly series: Uint16Array;
  private readonly gbpsMax: number;
  private crossing: Map<Channel, Flow[]> | null = null;

  constructor(raw: OverTime, links: number, place: string) {
    const frames = raw.frames;
    this.frames = frames;
    this.dtUs = raw.dt_us;
    this.measured = raw.measured;
    this.hasPaths = raw.paths;
    this.pathsNote = raw.paths_note ?? null;
    this.channels = unpackWhole(raw.channels, `${place}.channels`);
    const count = this.channels.length * frames;
    this.load = unpackBytes(raw.load, count, `${place}.load`);
    this.wait = unpackBytes(raw.wait, count, `${place}.wait`);
    this.causes = unpackWhole(raw.cause, `${place}.cause`);
    if (this.causes.length !== count) throw new Error(`${place}.cause has not ${count} values`);
    this.rows = new Int32Array(2 * links).fill(-1);
    this.channels.forEach((channel, row) => {
      if (channel >= 2 * links) throw new Error(`${place}.channels holds ${channel}, not a link`);
      this.rows[channel] = row;
    });
    raw.switches.forEach((node, row) => this.queueRows.set(node, row));
    this.queues = unpackWords(raw.queue, raw.switches.length * frames, `${place}.queue`);
    this.queueMax = raw.queue_bytes_max;
    const flows = raw.flows;
    this.flows = flows.from.map((from, index) => ({
      index,
      from,
      to: flows.to[index] ?? 0,
      group: flows.group[index] ?? 0,
      gbps: flows.gbps[index] ?? 0,
      aloneGbps: flows.alone_gbps[index] ?? null,
      share: flows.share[index] ?? null,
      held: flows.held[index] ?? 0,
      acksHeld: flows.acks_held[index] ?? 0,
      root: flows.root[index] ?? null,
      path: flows.path[index] ?? [],
    }));
    this.flowsTotal = flows.total;
    this.flowsRecorded = flows.recorded;
    this.series = unpackWords(flows.series, this.flows.length * frames, `${place}.flows.series`);
    this.gbpsMax = flows.gbps_max;
  }

  /** Row of a channel; -1 if it never sent nor waited. */
  rowOf(channel: Channel): number {
    return this.rows[channel] ?? -1;
  }

  /** Share of a frame a channel was busy, 0..1. */
  loadAt(channel: Channel, frame: number): number {
    return this.shareAt(this.load, channel, frame);
  }

  /** Share of a frame it had data and no credits, 0..1. */
  waitAt(channel: Channel, frame: number): number {
    return this.shareAt(this.wait, channel, frame);
  }

  private shareAt(values: Uint8Array, channel: Channel, frame: number): number {
    const row = this.rowOf(channel);
    return row < 0 || frame >= this.frames ? 0 : (values[row * this.frames + frame] ?? 0) / 255;
  }

  /** Bytes in a switch at the end of a frame; the mean of the measured ones for the whole run. */
  queueAt(node: number, frame: number | null): number {
    const row = this.queueRows.get(node);
    if (row === undefined) return 0;
    const at = (f: number) => ((this.queues[row * this.frames + f] ?? 0) * this.queueMax) / 65535;
    if (frame !== null) return frame < this.frames ? at(frame) : 0;
    const [from, to] = this.measured;
    let sum = 0;
    for (let f = from; f < to; f += 1) sum += at(f);
    return sum / Math.max(1, to - from);
  }

  /** Throughput of a flow in a frame, Gb/s. */
  gbpsAt(flow: number, frame: number): number {
    return ((this.series[flow * this.frames + frame] ?? 0) * this.gbpsMax) / 65535;
  }

  /** The frame at a simulated time, or null after the end of the run. */
  frameAt(us: number): number | null {
    const frame = Math.floor(us / this.dtUs + 1e-6);
    return frame < this.frames ? frame : null;
  }

  /** Flows that cross a channel, most throughput first. */
  crossingOf(channel: Channel): Flow[] {
    if (!this.crossing) {
      this.crossing = new Map();
      for (const flow of this.flows) {
        for (const step of flow.path) {
          const list = this.crossing.get(step);
          if (list) list.push(flow);
          else this.crossing.set(step, [flow]);
        }
      }
      for (const list of this.crossing.values()) list.sort((p, q) => q.gbps - p.gbps);
    }
    return this.crossing.get(channel) ?? [];
  }
}

/** How many times slower than alone; Infinity if starved, null where it was not run alone. */
export function slowdownOf(flow: { gbps: number; aloneGbps: number | null }): number | null {
  if (flow.aloneGbps === null || flow.aloneGbps === 0) return null;
  return flow.gbps > 0 ? flow.aloneGbps / flow.gbps : Infinity;
}

const made = new WeakMap<Variant, History | null>();

/** The history of a variant, unpacked once; null if the report has none. */
export function historyOf(variant: Variant): History | null {
  const known = made.get(variant);
  if (known !== undefined) return known;
  const links = variant.links.forward.length;
  const place = `variant ${variant.name}, over_time`;
  const history = variant.over_time ? new History(variant.over_time, links, place) : null;
  made.set(variant, history);
  return history;
}
