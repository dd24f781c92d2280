/** Victims of a variant: flows that are not hot and get too little, and their senders. */
import type { Report, Variant } from "./data";
import { historyOf, slowdownOf, type Channel, type Flow, type History } from "./over-time";

/** What is counted. */
export type Kind = "flows" | "senders";

/** Flows per host above which hosts are shown first. */
const FLOWS_OF_HOST_MAX = 4;

/** How badly a flow fares: larger is worse. */
export function sufferingOf(flow: Flow): number {
  return slowdownOf(flow) ?? (flow.share === null ? 0 : 1 / Math.max(1e-9, flow.share));
}

/** Flows that are not the cause, worst first; all where every flow is hot. */
export function sufferers(variant: Variant, history: History): Flow[] {
  const isHot = (flow: Flow) => variant.series.groups[flow.group]?.class === "hot";
  const innocent = history.flows.filter((flow) => !isHot(flow));
  const flows = innocent.length > 0 ? innocent : [...history.flows];
  // A program offers no share of a link to be compared with.
  const judged = new Set(flows.filter(isJudged).map(({ group }) => group));
  const known = judged.size > 0 ? flows.filter(({ group }) => judged.has(group)) : flows;
  return known.sort((p, q) => {
    const [a, b] = [sufferingOf(p), sufferingOf(q)];
    return (a === b ? 0 : b - a) || q.held - p.held || p.index - q.index;
  });
}

/** Whether it is known what a flow could get. */
export function isJudged(flow: Flow): boolean {
  return flow.share !== null || slowdownOf(flow) !== null;
}

/** What becomes of a flow or of a sender. */
export interface Fate {
  /** The sending host. */
  from: number;
  slowdown: number | null;
  share: number | null;
}

/** Whether what fares so badly is said to suffer. */
export function suffers({ slowdown, share }: Fate, from: number): boolean {
  if (slowdown !== null) return slowdown >= from;
  return share !== null && share * from < 1;
}

/** By flow in its order, or by sender. */
export function fatesOf(kind: Kind, flows: Flow[]): Fate[] {
  if (kind === "flows") {
    return flows.map((flow) => {
      return { from: flow.from, share: flow.share, slowdown: slowdownOf(flow) };
    });
  }
  return hostsOf(flows).map((host) => {
    const slowdown = slowdownOf({ gbps: host.gbps, aloneGbps: host.alone });
    return { from: host.node, share: host.share, slowdown };
  });
}

/** Where a host has many flows, each carries too few messages to be judged by itself. */
export function firstKind(variants: Variant[]): Kind {
  const crowded = variants.some((variant) => {
    const flows = historyOf(variant)?.flows ?? [];
    return flows.length > FLOWS_OF_HOST_MAX * new Set(flows.map(({ from }) => from)).size;
  });
  return crowded ? "senders" : "flows";
}

/** Flows of one sender together. */
export interface Host {
  node: number;
  flows: number;
  gbps: number;
  alone: number | null;
  share: number | null;
  held: number;
  roots: Map<Channel, number>;
}

/** The flows of each sender together. */
export function hostsOf(flows: Flow[]): Host[] {
  const hosts = new Map<number, Host>();
  for (const flow of flows) {
    const host = hosts.get(flow.from) ?? {
      node: flow.from,
      flows: 0,
      gbps: 0,
      alone: null,
      share: flow.share,
      held: 0,
      roots: new Map<Channel, number>(),
    };
    hosts.set(flow.from, host);
    host.flows += 1;
    host.gbps += flow.gbps;
    if (flow.aloneGbps !== null) host.alone = (host.alone ?? 0) + flow.aloneGbps;
    host.held = Math.max(host.held, flow.held, flow.acksHeld);
    if (flow.root !== null) {
      host.roots.set(flow.root, (host.roots.get(flow.root) ?? 0) + flow.held + flow.acksHeld);
    }
  }
  return [...hosts.values()];
}

/** Hosts that send what suffers, counted as the page counts first; a hot sender is no victim. */
export function victimHosts(report: Report, variant: Variant): Set<number> {
  const history = historyOf(variant);
  if (!history) return new Set();
  const isHot = (flow: Flow) => variant.series.groups[flow.group]?.class === "hot";
  const flows = sufferers(variant, history).filter((flow) => !isHot(flow));
  const fates = fatesOf(firstKind(report.variants), flows);
  return new Set(fates.filter((fate) => suffers(fate, report.suffers_from)).map((f) => f.from));
}

/** Whether a link leads to one of these hosts. */
export function hasVictim({ fabric }: Report, links: number[], victims: Set<number>): boolean {
  return links.some((link) => {
    const ends = fabric.links[link];
    return ends !== undefined && (victims.has(ends.a) || victims.has(ends.b));
  });
}
