/** The numbers of what the reader points at. */
import type { Report, Variant } from "./data";
import { html } from "./dom";
import type { SwitchLinks } from "./fabric-links";
import { count, percent, rate } from "./format";
import type { Selection } from "./map-find";

/** Elements that describe a link, a switch or a bundle. */
export function describe(
  report: Report,
  variant: Variant,
  links: SwitchLinks,
  selection: Selection,
): HTMLElement[] {
  if (selection.kind === "link") return describeLink(report, variant, selection.link);
  const node = selection.kind === "node" ? selection.node : selection.bar.node;
  const name = report.fabric.nodes[node]?.name ?? "";
  if (selection.kind === "bar") {
    const { bar } = selection;
    const title = html("strong", {}, `${name}: ${bar.links.length} ${bar.noun}`);
    return [title, ...summarize(report, variant, bar.links)];
  }
  const all = links.all[node] ?? [];
  const hosts = links.hosts[node]?.length ?? 0;
  const ports = `${count(all.length, "link")}, ${hosts} to hosts`;
  return [html("strong", {}, name), html("div", {}, ports), ...summarize(report, variant, all)];
}

function describeLink(report: Report, variant: Variant, link: number): HTMLElement[] {
  const cable = report.fabric.links[link];
  if (!cable) return [];
  const { forward, backward, wait_forward, wait_backward } = variant.links;
  const name = (node: number) => report.fabric.nodes[node]?.name ?? "";
  const row = (from: number, to: number, load = 0, wait = 0) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, `${name(from)} → ${name(to)}`),
      html("td", {}, percent(load)),
      html("td", {}, rate(load * cable.gbps)),
      html("td", {}, percent(wait)),
    );
  const heads = ["Direction", "Load", "Carried", "Waiting"];
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
        row(cable.a, cable.b, forward[link], wait_forward[link]),
        row(cable.b, cable.a, backward[link], wait_backward[link]),
      ),
    ),
  ];
}

/** Worst and mean over both directions of some links. */
function summarize(report: Report, variant: Variant, members: number[]): HTMLElement[] {
  const { forward, backward, wait_forward, wait_backward } = variant.links;
  const line = (label: string, there: number[], back: number[]) => {
    let [most, sum, at] = [-1, 0, 0];
    for (const link of members) {
      const worse = Math.max(there[link] ?? 0, back[link] ?? 0);
      sum += (there[link] ?? 0) + (back[link] ?? 0);
      if (worse > most) [most, at] = [worse, link];
    }
    const mean = sum / Math.max(1, 2 * members.length);
    const place = most > 0 ? `, most ${percent(most)} on ${report.fabric.links[at]?.name}` : "";
    return html("div", {}, `${label}: mean ${percent(mean)}${place}`);
  };
  if (members.length === 0) return [];
  return [line("Load", forward, backward), line("Waiting", wait_forward, wait_backward)];
}
