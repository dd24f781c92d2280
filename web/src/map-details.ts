/** The numbers of what the reader points at. */
import type { Report, Variant } from "./data";
import { html } from "./dom";
import type { SwitchLinks } from "./fabric-links";
import { bytes, count, percent, rate } from "./format";
import type { Selection } from "./map-find";
import { Names } from "./names";

/** Reads what a channel does now, 0..1. */
export interface Shares {
  load(channel: number): number;
  wait(channel: number): number;
}

/** The same with the bytes that stand in a switch; null if that is not known. */
export interface Readings extends Shares {
  queue(node: number): number | null;
}

/** What a screen reader is told of a map. */
export function spokenOf({ fabric }: Report, variant: Variant): string {
  const switches = fabric.nodes.filter((node) => node.kind === "switch").length;
  const hosts = fabric.nodes.length - switches;
  const size = `${count(switches, "switch")}, ${count(hosts, "host")}`;
  return `Map of the fabric, variant ${variant.name}: ${size}`;
}

/** Elements that describe a link, a switch or a bundle. */
export function describe(
  report: Report,
  read: Readings,
  links: SwitchLinks,
  selection: Selection,
): HTMLElement[] {
  if (selection.kind === "link") return describeLink(report, read, selection.link);
  const node = selection.kind === "node" ? selection.node : selection.bar.node;
  const name = report.fabric.nodes[node]?.name ?? "";
  if (selection.kind === "bar") {
    const { bar } = selection;
    const title = html("strong", {}, `${name}: ${bar.links.length} ${bar.noun}`);
    return [title, ...summarize(report, read, bar.links)];
  }
  const all = links.all[node] ?? [];
  const hosts = links.hosts[node]?.length ?? 0;
  const ports = `${count(all.length, "link")}, ${hosts} to hosts`;
  const bytesThere = read.queue(node);
  const queue = bytesThere !== null && html("div", {}, `Queued in it: ${bytes(bytesThere)}`);
  const lines = [html("div", {}, ports), ...(queue ? [queue] : [])];
  return [html("strong", {}, name), ...lines, ...summarize(report, read, all)];
}

function describeLink(report: Report, read: Shares, link: number): HTMLElement[] {
  const cable = report.fabric.links[link];
  if (!cable) return [];
  const names = new Names(report);
  const name = (node: number) => names.node(node);
  const row = (from: number, to: number, channel: number) => {
    const load = read.load(channel);
    return html(
      "tr",
      {},
      html("th", { scope: "row" }, `${name(from)} → ${name(to)}`),
      html("td", {}, percent(load)),
      html("td", {}, rate(load * cable.gbps)),
      html("td", {}, percent(read.wait(channel))),
    );
  };
  const heads = ["Direction", "Load", "Carries", "Waits"];
  const head = html("tr", {}, ...heads.map((text) => html("th", { scope: "col" }, text)));
  return [
    html("strong", {}, cable.name),
    html("span", { class: "quiet" }, ` ${rate(cable.gbps)}`),
    html(
      "table",
      {},
      html("thead", {}, head),
      html(
        "tbody",
        {},
        row(cable.a, cable.b, 2 * link),
        row(cable.b, cable.a, 2 * link + 1),
      ),
    ),
  ];
}

/** Worst and mean over both directions of some links. */
function summarize(report: Report, read: Shares, members: number[]): HTMLElement[] {
  const line = (label: string, share: (channel: number) => number) => {
    let [most, sum, at] = [-1, 0, 0];
    for (const link of members) {
      const [there, back] = [share(2 * link), share(2 * link + 1)];
      const worse = Math.max(there, back);
      sum += there + back;
      if (worse > most) [most, at] = [worse, link];
    }
    const mean = sum / Math.max(1, 2 * members.length);
    const place = most > 0 ? `, most ${percent(most)} on ${report.fabric.links[at]?.name}` : "";
    return html("div", {}, `${label}: mean ${percent(mean)}${place}`);
  };
  if (members.length === 0) return [];
  return [line("Load", read.load), line("Waits for credits", read.wait)];
}
