/** Facts about the cables of a fabric that every layout needs. */
import type { Fabric } from "./data";

/** Cables sorted by what they join. */
export interface SwitchLinks {
  /** Per node: cables to hosts, in the hosts' order; empty for a host. */
  hosts: { link: number; host: number }[][];
  /** Cables between two switches (or two hosts, cabled back to back). */
  trunks: number[];
  /** Per node: every cable it has. */
  all: number[][];
  /** Indices of the nodes that are drawn as boxes. */
  switches: number[];
}

/** Sorts the cables of a fabric. */
export function splitLinks(fabric: Fabric): SwitchLinks {
  const { nodes, links } = fabric;
  const isSwitch = nodes.map((node) => node.kind === "switch");
  const hosts: SwitchLinks["hosts"] = nodes.map(() => []);
  const all: number[][] = nodes.map(() => []);
  const trunks: number[] = [];
  const backToBack = new Set<number>();
  links.forEach(({ a, b }, link) => {
    all[a]?.push(link);
    if (b !== a) all[b]?.push(link);
    if (isSwitch[a] === isSwitch[b]) {
      trunks.push(link);
      if (!isSwitch[a]) backToBack.add(a).add(b);
    } else {
      const [at, host] = isSwitch[a] ? [a, b] : [b, a];
      hosts[at]?.push({ link, host });
    }
  });
  const key = (node: number) => nodes[node] ?? { x: 0, y: 0 };
  for (const list of hosts) {
    list.sort((p, q) => key(p.host).x - key(q.host).x || key(p.host).y - key(q.host).y);
  }
  const drawn = nodes.map((_, i) => i).filter((i) => isSwitch[i] || backToBack.has(i));
  return { hosts, trunks, all, switches: drawn };
}

/** The switches of a tree by level, top level first, each level from left to right. */
export function rowsOfTree(fabric: Fabric, switches: number[]): number[][] {
  const rows = new Map<number, number[]>();
  for (const node of switches) {
    const level = fabric.nodes[node]?.level ?? 0;
    const row = rows.get(level);
    if (row) row.push(node);
    else rows.set(level, [node]);
  }
  const x = (node: number) => fabric.nodes[node]?.x ?? 0;
  return [...rows.entries()]
    .sort(([p], [q]) => q - p)
    .map(([, row]) => row.sort((p, q) => x(p) - x(q) || p - q));
}

/** Per link of a tree: whether a→b leads up. A host is below every switch. */
export function forwardIsUp(fabric: Fabric): boolean[] {
  const height = (node: number) => {
    const found = fabric.nodes[node];
    return found?.kind === "switch" ? (found.level ?? 0) : -1;
  };
  return fabric.links.map(({ a, b }) => height(b) > height(a));
}

/** What the switches of a row of a tree are called; rows are counted from the top. */
export function rowNoun(row: number, rows: number): string {
  if (row === rows - 1) return rows === 1 ? "switch" : "leaf";
  if (row === 0) return rows === 2 ? "spine" : "core";
  return rows === 3 ? "middle" : `level ${rows - row}`;
}

/** Names without the prefix they all share, cut where a word ends. */
export function shortNames(names: string[]): string[] {
  const [first = ""] = names;
  let shared = first.length;
  for (const name of names) {
    while (shared > 0 && !name.startsWith(first.slice(0, shared))) shared -= 1;
  }
  while (shared > 0 && /[0-9A-Za-z]/.test(first[shared - 1] ?? "")) {
    // A prefix such as "leaf" of "leaf12" may go; digits before the cut belong to the number.
    if (/[A-Za-z]/.test(first[shared - 1] ?? "") && /[0-9]/.test(first[shared] ?? "")) break;
    shared -= 1;
  }
  return names.length > 1 ? names.map((name) => name.slice(shared) || name) : names;
}

/**
 * What switches are called where there is little room: managed switches by their host name, as
 * "MF0;leaf3:SX6036/U1" is "leaf3", without the words that all names begin with. Only what still
 * tells them apart is left out.
 */
export function switchNames(names: string[]): string[] {
  const plain = names.map((name) => {
    const [, host, part = ""] = /^MF0;([^:;]+):[^:/]+((?:\/\w+)*)$/.exec(name) ?? [];
    return host ? { short: host, long: `${host}${part}` } : { short: name, long: name };
  });
  const isUnique = (some: string[]) => new Set(some).size === new Set(names).size;
  const [short, long] = [plain.map((one) => one.short), plain.map((one) => one.long)];
  return withoutSharedWords(isUnique(short) ? short : isUnique(long) ? long : names);
}

/** Names without the whole words that all of them begin with; a number keeps its word. */
function withoutSharedWords(names: string[]): string[] {
  const [first = ""] = names;
  let shared = first.length;
  for (const name of names) {
    while (shared > 0 && !name.startsWith(first.slice(0, shared))) shared -= 1;
  }
  while (shared > 0 && /[0-9A-Za-z]/.test(first[shared - 1] ?? "")) shared -= 1;
  return names.length > 1 ? names.map((name) => name.slice(shared) || name) : names;
}

/** A value held between two others. */
export function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
