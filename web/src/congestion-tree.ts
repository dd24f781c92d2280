/**
 * The congestion tree at an instant, read from the causes in the data.
 *
 * What holds a channel back is found in `crates/lab/src/report/congestion.rs`, which defines it.
 * Here causes are only followed: the depth of a branch is its number of steps to the root.
 */
import type { Channel, History } from "./over-time";

/** Codes of a cause; larger ones are a channel plus 3. */
const FREE = 0;
const UNKNOWN = 1;
const RECEIVER = 2;
const CHANNEL = 3;

/** A root and what it holds back. */
export interface Root {
  channel: Channel;
  /** Branches of its tree, the root itself not counted. */
  branches: number;
  depth: number;
}

/** The trees of a frame. */
export interface Trees {
  /** Depth by row of the history: 0 for a root or a circle, -1 for what no root holds back. */
  depth: Int16Array;
  /** Root by row; -1 in a circle and outside of trees. */
  root: Int32Array;
  /** Roots, the one with most branches first. */
  roots: Root[];
  /** Channels that wait for each other in a circle. */
  circle: number;
  /** Channels that are held back and no output tells why. */
  unknown: number;
}

const cache = new WeakMap<History, Map<number | null, Trees>>();

/** The trees of a frame, or those of at least half of the measured frames; null without such. */
export function treesAt(history: History, frame: number | null): Trees | null {
  // A run that was stopped in its warm-up has instants only.
  if (frame === null && history.measured[0] >= history.measured[1]) return null;
  const known = cache.get(history) ?? new Map<number | null, Trees>();
  cache.set(history, known);
  let trees = known.get(frame);
  if (!trees) {
    trees = frame === null ? lasting(history) : read(history, frame);
    known.set(frame, trees);
  }
  return trees;
}

function read(history: History, frame: number): Trees {
  const { channels, causes, frames } = history;
  const depth = new Int16Array(channels.length).fill(-1);
  const root = new Int32Array(channels.length).fill(-1);
  const done = new Uint8Array(channels.length);
  let [circle, unknown] = [0, 0];
  const causeOf = (row: number) => causes[row * frames + frame] ?? FREE;
  for (let start = 0; start < channels.length; start += 1) {
    if (causeOf(start) === FREE || done[start]) continue;
    const way: number[] = [];
    const onWay = new Map<number, number>();
    let row = start;
    let [at, end] = [-1, -1];
    for (;;) {
      if (onWay.has(row)) {
        // A circle: its members are all equally the cause.
        for (const member of way.splice(onWay.get(row) ?? 0)) {
          [depth[member], done[member]] = [0, 1];
          circle += 1;
        }
        at = 0;
        break;
      }
      if (done[row]) {
        [at, end] = [depth[row] ?? -1, root[row] ?? -1];
        break;
      }
      const cause = causeOf(row);
      if (cause === FREE || cause === RECEIVER) {
        [at, end] = [0, channels[row] ?? -1];
        [depth[row], root[row], done[row]] = [0, end, 1];
        break;
      }
      onWay.set(row, way.length);
      way.push(row);
      if (cause === UNKNOWN) break;
      const next = history.rowOf(cause - CHANNEL);
      if (next < 0) break;
      row = next;
    }
    for (const branch of way.reverse()) {
      if (at >= 0) at += 1;
      else unknown += 1;
      [depth[branch], root[branch], done[branch]] = [at, end, 1];
    }
  }
  return { depth, root, roots: rootsOf(depth, root), circle, unknown };
}

function rootsOf(depth: Int16Array, root: Int32Array): Root[] {
  const found = new Map<Channel, Root>();
  depth.forEach((steps, row) => {
    const channel = root[row] ?? -1;
    if (channel < 0) return;
    const entry = found.get(channel) ?? { channel, branches: 0, depth: 0 };
    entry.branches += Number(steps > 0);
    entry.depth = Math.max(entry.depth, steps);
    found.set(channel, entry);
  });
  return [...found.values()].sort((p, q) => q.branches - p.branches || p.channel - q.channel);
}

/** Rows that are lit in at least half of the measured frames, with their usual depth and root. */
function lasting(history: History): Trees {
  const [from, to] = history.measured;
  const rows = history.channels.length;
  const lit = new Uint16Array(rows);
  const sums = new Float64Array(rows);
  const votes: Map<number, number>[] = Array.from({ length: rows }, () => new Map());
  let [circle, unknown] = [0, 0];
  for (let frame = from; frame < to; frame += 1) {
    const trees = read(history, frame);
    circle += trees.circle;
    unknown += trees.unknown;
    trees.depth.forEach((steps, row) => {
      if (steps < 0) return;
      lit[row] = (lit[row] ?? 0) + 1;
      sums[row] = (sums[row] ?? 0) + steps;
      const root = trees.root[row] ?? -1;
      votes[row]?.set(root, (votes[row]?.get(root) ?? 0) + 1);
    });
  }
  const frames = Math.max(1, to - from);
  const depth = new Int16Array(rows).fill(-1);
  const root = new Int32Array(rows).fill(-1);
  for (let row = 0; row < rows; row += 1) {
    const count = lit[row] ?? 0;
    if (count === 0 || 2 * count < frames) continue;
    depth[row] = Math.round((sums[row] ?? 0) / count);
    const [most] = [...(votes[row] ?? [])].sort((p, q) => q[1] - p[1]);
    root[row] = most?.[0] ?? -1;
  }
  const mean = (sum: number) => Math.round(sum / frames);
  return { depth, root, roots: rootsOf(depth, root), circle: mean(circle), unknown: mean(unknown) };
}
