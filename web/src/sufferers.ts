/** Who suffers: the flows or hosts of a variant that get least of what they could. */
import type { Variant } from "./data";
import { choice, html, section } from "./dom";
import type { FabricViews } from "./fabric-views";
import { flowTable } from "./flow-table";
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
  return flows.sort((p, q) => {
    const [a, b] = [sufferingOf(p), sufferingOf(q)];
    return (a === b ? 0 : b - a) || q.held - p.held || p.index - q.index;
  });
}

/** The section, or null if no variant has flows. */
export function whoSuffers(
  variants: Variant[],
  names: Names,
  views: FabricViews,
): HTMLElement | null {
  const has = (variant: Variant) => (historyOf(variant)?.flows.length ?? 0) > 0;
  if (!variants.some(has)) return null;
  let [kind, shown]: [Kind, Variant | undefined] = [firstKind(variants), variants[0]];
  const body = html("div", {});
  const title = html("p", { class: "note under-title" });
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
    const variant = variants.length > 1 ? `Variant ${shown.name}: ` : "";
    title.textContent = variant + inWords(kind, flows);
    body.replaceChildren(
      kind === "flows"
        ? flowTable(flows, columns, "Flows that suffer most")
        : hostTable(flows, names, columns.openRoot),
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
  return section("sufferers", "Who suffers", title, controls, body);
}

/** Where a host has many flows, each carries too few messages to be judged by itself. */
function firstKind(variants: Variant[]): Kind {
  const crowded = variants.some((variant) => {
    const flows = historyOf(variant)?.flows ?? [];
    return flows.length > FLOWS_OF_HOST_MAX * new Set(flows.map(({ from }) => from)).size;
  });
  return crowded ? "hosts" : "flows";
}

function inWords(kind: Kind, flows: Flow[]): string {
  const hosts = () => hostsOf(flows).map(({ gbps, alone }) => ({ gbps, aloneGbps: alone }));
  const slowdowns = (kind === "hosts" ? hosts() : flows).map((one) => slowdownOf(one));
  const slowed = slowdowns.filter((slowdown) => (slowdown ?? 1) >= 1.5).length;
  const starved = slowdowns.filter((slowdown) => slowdown === Infinity).length;
  const known = slowdowns.some((slowdown) => slowdown !== null);
  const noun = kind === "hosts" ? "sending host" : "flow";
  const many = count(slowdowns.length, noun);
  if (slowdowns.length === 0) return "no flow was delivered anything.";
  if (!known) return `${many}, by what they get of what they offer.`;
  const none = starved > 0 ? `, ${starved} of them starved` : "";
  const run = kind === "hosts" ? "send" : "run";
  const innocent = `${slowed} of ${many} that are not hot`;
  return `${innocent} ${run} at least 1.5 times slower than alone${none}.`;
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

function hostTable(flows: Flow[], names: Names, open: (root: Channel) => void): HTMLElement {
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
  const head = heads.map((text, i) =>
    html("th", { scope: "col", class: i > 0 && i < last && "number" }, text),
  );
  const number = (text: string) => html("td", { class: "number" }, text);
  const rows = hosts.slice(0, HOSTS_SHOWN).map((host) => {
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
  });
  const whole = html(
    "table",
    { class: "flows" },
    html("thead", {}, html("tr", {}, ...head)),
    html("tbody", {}, ...rows),
  );
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": "Hosts" };
  return html("div", region, whole);
}
