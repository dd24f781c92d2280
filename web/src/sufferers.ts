/** Who suffers: the flows or hosts of a variant that get least of what they could. */
import type { Report, Variant } from "./data";
import { choice, html, section } from "./dom";
import type { FabricViews } from "./fabric-views";
import { flowTable, unfolding } from "./flow-table";
import { count, fixed, percent, times } from "./format";
import type { Names } from "./names";
import { historyOf, slowdownOf, type Channel, type Flow, type History } from "./over-time";

type Kind = "flows" | "hosts";

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
function isJudged(flow: Flow): boolean {
  return flow.share !== null || slowdownOf(flow) !== null;
}

/** Whether what fares so badly is said to suffer. */
function suffers(one: { slowdown: number | null; share: number | null }, from: number): boolean {
  if (one.slowdown !== null) return one.slowdown >= from;
  return one.share !== null && one.share * from < 1;
}

/** The section, or null if no variant has flows. */
export function whoSuffers(
  report: Report,
  names: Names,
  views: FabricViews,
): HTMLElement | null {
  const { variants, suffers_from: from } = report;
  // Of programs alone, when they are complete tells how they fare.
  const tells = (flow: Flow) => (report.programs ?? []).length === 0 || isJudged(flow);
  const has = (variant: Variant) => historyOf(variant)?.flows.some(tells) ?? false;
  if (!variants.some(has)) return null;
  let [kind, shown]: [Kind, Variant | undefined] = [firstKind(variants), variants[0]];
  const body = html("div", {});
  const title = html("p", { class: "note under-title" });
  const others = html("ul", { class: "by-variant" });
  const fill = () => {
    const history = shown && historyOf(shown);
    if (!shown || !history) return;
    const flows = sufferers(shown, history);
    const columns = {
      names,
      groups: shown.series.groups,
      openFlow: (flow: Flow) => views.openFlow(flow.index),
      openRoot: (channel: Channel) => views.open(channel),
    };
    const several = report.seeds.length > 1 && shown.seed != null;
    const seed = several ? `, seed ${shown.seed}` : "";
    const whose = variants.length > 1 ? `Variant ${shown.name}${seed}: ` : "";
    const fates = fatesOf(kind, flows);
    const words = inWords(kind, fates, from);
    title.textContent = whose ? whose + words : words.charAt(0).toUpperCase() + words.slice(1);
    others.replaceChildren(...(variants.length > 1 ? compared(report, kind, views) : []));
    const first = fates.filter((fate) => suffers(fate, from)).length;
    body.replaceChildren(
      kind === "flows"
        ? flowTable(flows, columns, "Flows that suffer most", first)
        : hostTable(flows, names, columns.openRoot, first),
    );
  };
  views.onVariant((variant) => {
    shown = variant;
    fill();
  });
  const options: { value: Kind; label: string }[] = [
    { value: "flows", label: "Flows" },
    { value: "hosts", label: "Sending hosts" },
  ];
  const pick = choice("sufferers", "Show", options, kind, (value) => {
    kind = value;
    fill();
  });
  fill();
  const controls = html("div", { class: "controls" }, pick.element);
  return section("sufferers", "Who suffers", title, others, controls, body);
}

/** How many suffer in each variant; a press shows them. */
function compared(report: Report, kind: Kind, views: FabricViews): HTMLElement[] {
  return report.variants.map((variant) => {
    const name = html("button", { type: "button", class: "link" }, variant.name);
    name.addEventListener("click", () => views.choose(variant));
    const history = historyOf(variant);
    const fates = history ? fatesOf(kind, sufferers(variant, history)) : [];
    const suffering = fates.filter((fate) => suffers(fate, report.suffers_from)).length;
    const isKnown = fates.some(({ slowdown, share }) => slowdown !== null || share !== null);
    const nobody = fates.length === 0 || isKnown ? "nobody" : "not measured";
    const many = suffering === 0 ? nobody : `${suffering} of ${fates.length}`;
    return html("li", {}, name, ` ${history ? many : "not run"}`);
  });
}

/** What becomes of a flow or of a host. */
interface Fate {
  slowdown: number | null;
  share: number | null;
}

function fatesOf(kind: Kind, flows: Flow[]): Fate[] {
  if (kind === "flows") return flows.map((flow) => ({ ...flow, slowdown: slowdownOf(flow) }));
  return hostsOf(flows).map((host) => {
    return { share: host.share, slowdown: slowdownOf({ gbps: host.gbps, aloneGbps: host.alone }) };
  });
}

/** Where a host has many flows, each carries too few messages to be judged by itself. */
function firstKind(variants: Variant[]): Kind {
  const crowded = variants.some((variant) => {
    const flows = historyOf(variant)?.flows ?? [];
    return flows.length > FLOWS_OF_HOST_MAX * new Set(flows.map(({ from }) => from)).size;
  });
  return crowded ? "hosts" : "flows";
}

/** Who suffers, in a sentence; if nobody does, how the worst fares. */
function inWords(kind: Kind, fates: Fate[], from: number): string {
  const noun = kind === "hosts" ? "sending host" : "flow";
  const many = count(fates.length, noun);
  const suffering = fates.filter((fate) => suffers(fate, from)).length;
  const slowdowns = fates.flatMap(({ slowdown }) => slowdown ?? []);
  const shares = fates.flatMap(({ share }) => share ?? []);
  const least = (values: number[]) => percent(values.reduce((p, q) => Math.min(p, q), 1));
  if (fates.length === 0) return "no flow was delivered anything.";
  if (slowdowns.length + shares.length === 0) return "not known: nothing was measured.";
  if (slowdowns.length === 0) {
    const bound = percent(1 / from);
    if (suffering > 0) return `${suffering} of ${many} get less than ${bound} of what they offer.`;
    const worst = shares.length > 0 ? ` at least ${least(shares)} of` : "";
    return `nobody: all of ${many} get${worst} what they offer; below ${bound} they would count.`;
  }
  const run = kind === "hosts" ? "send" : "run";
  if (suffering === 0) {
    const worst = least(slowdowns.map((slowdown) => 1 / slowdown));
    const got = `${many} that are not hot get at least ${worst} of what they get alone`;
    return `nobody: ${got}; from ${from} times slower on they would count.`;
  }
  const starved = slowdowns.filter((slowdown) => slowdown === Infinity).length;
  const none = starved > 0 ? `, ${starved} of them starved` : "";
  const innocent = `${suffering} of ${many} that are not hot`;
  return `${innocent} ${run} at least ${from} times slower than alone${none}.`;
}

/** Flows of one sender together. */
interface Host {
  node: number;
  flows: number;
  gbps: number;
  alone: number | null;
  share: number | null;
  held: number;
  roots: Map<Channel, number>;
}

function hostsOf(flows: Flow[]): Host[] {
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

const HOSTS_SHOWN = 16;

function hostTable(
  flows: Flow[],
  names: Names,
  open: (root: Channel) => void,
  first: number,
): HTMLElement {
  const slow = (host: Host) => slowdownOf({ gbps: host.gbps, aloneGbps: host.alone });
  const worse = (host: Host) => slow(host) ?? 1 / Math.max(1e-9, host.share ?? 1);
  const hosts = hostsOf(flows).sort((p, q) => {
    const [a, b] = [worse(p), worse(q)];
    return (a === b ? 0 : b - a) || p.node - q.node;
  });
  const alone = hosts.some((host) => host.alone !== null);
  const heads = ["Host", "Flows", "Sends, Gbit/s", ...(alone ? ["Slowdown"] : [])];
  heads.push("Gets of offer", "Held back", "By root");
  const last = heads.length - 1;
  const cells = heads.map((text, i) =>
    html("th", { scope: "col", class: i > 0 && i < last && "number" }, text),
  );
  const number = (text: string) => html("td", { class: "number" }, text);
  const row = (host: Host) => {
    const slowdown = slow(host);
    const [root] = [...host.roots].sort((p, q) => q[1] - p[1]);
    const by = html("td", {}, root ? null : "–");
    if (root) {
      const button = html("button", { type: "button", class: "link" }, names.channel(root[0]));
      button.addEventListener("click", () => open(root[0]));
      by.append(button);
    }
    return html(
      "tr",
      {},
      html("th", { scope: "row" }, names.node(host.node)),
      number(String(host.flows)),
      number(fixed(host.gbps, 2)),
      alone && number(slowdown === null ? "–" : times(slowdown)),
      number(host.share === null ? "–" : percent(host.share)),
      number(percent(host.held)),
      by,
    );
  };
  const body = html("tbody", {});
  const show = (many: number) => body.replaceChildren(...hosts.slice(0, many).map(row));
  const head = html("thead", {}, html("tr", {}, ...cells));
  const whole = html("table", { class: "flows" }, head, body);
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": "Hosts" };
  const shown = { first: Math.min(first, HOSTS_SHOWN), all: hosts.length };
  return unfolding(html("div", region, whole), show, shown);
}
