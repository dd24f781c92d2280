/** What nodes and channels are called on the page: short where that is still clear. */
import type { Report } from "./data";
import { switchNames } from "./fabric-links";
import type { Channel } from "./over-time";

/** Names of one report. */
export class Names {
  private readonly nodes: string[];

  constructor(private readonly report: Report) {
    const { nodes } = report.fabric;
    const shorts = switchNames(nodes.filter((n) => n.kind === "switch").map((n) => n.name));
    let next = 0;
    this.nodes = nodes.map((node) =>
      node.kind === "switch" ? (shorts[next++] ?? node.name) : node.name,
    );
  }

  /** A node; a switch without the prefix all switches share. */
  node(node: number): string {
    return this.nodes[node] ?? "";
  }

  /** Transmitting and receiving node of a channel. */
  ends(channel: Channel): [number, number] {
    const cable = this.report.fabric.links[channel >> 1];
    const [a, b] = [cable?.a ?? 0, cable?.b ?? 0];
    return channel & 1 ? [b, a] : [a, b];
  }

  /** "leaf22[7] → storage01[1]". */
  channel(channel: Channel): string {
    const name = this.report.fabric.links[channel >> 1]?.name ?? "";
    const ports = /\[(\d+)\] ?[-–] ?.*\[(\d+)\]$/.exec(name);
    const [from, to] = this.ends(channel);
    const port = (end: number) => (ports ? `[${ports[end + 1]}]` : "");
    const back = channel & 1;
    return `${this.node(from)}${port(back)} → ${this.node(to)}${port(1 - back)}`;
  }

  /** A text of the report with the names of switches shortened. */
  shorten(text: string, node: number): string {
    const full = this.report.fabric.nodes[node]?.name ?? "";
    return full ? text.replaceAll(full, this.node(node)) : text;
  }
}
