/** The part of the data contract (data.ts) that tells of programs. */
import type { FlowClass } from "./data";

/** What the ranks of a traffic do, and when they had done it. */
export interface Program {
  name: string;
  kind: string;
  class: FlowClass;
  /** One entry per variant that has it. */
  completions: Completion[];
}

/** A program in a variant. */
export interface Completion {
  variant: string;
  ranks: number;
  /** From the beginning of the run until its last rank had ended, mean over seeds, µs, or null. */
  us: number | null;
  /** Half of the 95 % confidence interval, µs; null with one seed. */
  interval_us: number | null;
  /** Seeds in which it had ended, of so many. */
  ended: number;
  seeds: number;
}

/** An operation that a rank waits for for ever. */
export interface WaitingRank {
  program: string;
  kind: string;
  rank: number;
  host: string;
  operation: "send" | "receive" | "put" | "get" | "work" | "probe" | "time";
  /** The other rank; null for any, or where there is none. */
  peer: number | null;
  peer_host: string | null;
  tag: number | null;
  context: number | null;
}
