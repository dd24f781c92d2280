/** Who suffers: the flows or hosts of a variant that get least of what they could. */
import type { Report, Variant } from "./data";
import { choice, html, section } from "./dom";
import type { FabricViews } from "./fabric-views";
import { flowTable, unfolding } from "./flow-table";
import { count, fixed, percent, times } from "./format";
import type { Names } from "./names";
import { historyOf, slowdownOf, type Channel, type Flow } from "./over-time";
import {
  fatesOf,
  firstKind,
  hostsOf,
  isJudged,
  sufferers,
  suffers,
  type Fate,
  type Host,
  type Kind,
} from "./victims";

/** How many times slower than alone a flow starves: a tenth or less of it arrives. */
const STARVES_FROM = 10;

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
    const suffering = fates.filter((fate) => suffers(fate, from)).length;
    body.replaceChildren(
      kind === "flows"
        ? flowTable(flows, columns, "Flows that suffer most", suffering)
        : hostTable(flows, names, columns.openRoot, suffering),
    );
  };
  views.onVariant((variant) => {
    shown = variant;
    fill();
  });
  const options: { value: Kind; label: string }[] = [
    { value: "flows", label: "Flows" },
    { value: "senders", label: "Senders" },
  ];
  const pick = choice("sufferers", "Count", options, kind, (value) => {
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
    const many = `${suffering} of ${count(fates.length, nounOf(kind))}`;
    const few = fates.length === 0 || isKnown ? many : "not measured";
    const said = suffering === 0 ? few : html("span", { class: "suffers" }, many);
    return html("li", {}, name, " ", history ? said : "not run");
  });
}

const nounOf = (kind: Kind) => (kind === "senders" ? "sender" : "flow");

/** Who suffers, in a sentence; if nobody does, how the worst fares. */
function inWords(kind: Kind, fates: Fate[], from: number): string {
  const many = count(fates.length, nounOf(kind));
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
    return `nobody: all of ${many} get${worst} what they offer. Victims get below ${bound}.`;
  }
  if (suffering === 0) {
    const worst = least(slowdowns.map((slowdown) => 1 / slowdown));
    const got = `${many} that are not hot get at least ${worst} of what they get alone`;
    return `nobody: ${got}. Victims are at least ${from} times slower.`;
  }
  const starved = slowdowns.filter((slowdown) => slowdown >= STARVES_FROM).length;
  const starve = starved === 1 ? "starves" : "starve";
  const none = starved > 0 ? `; ${starved} of them ${starve} (a tenth or less arrives)` : "";
  const are = kind === "senders" ? "send" : "run";
  const innocent = `${suffering} of ${many} that are not hot`;
  return `${innocent} ${are} at least ${from} times slower than alone${none}.`;
}

const HOSTS_SHOWN = 16;

function hostTable(
  flows: Flow[],
  names: Names,
  open: (root: Channel) => void,
  suffering: number,
): HTMLElement {
  const slow = (host: Host) => slowdownOf({ gbps: host.gbps, aloneGbps: host.alone });
  const worse = (host: Host) => slow(host) ?? 1 / Math.max(1e-9, host.share ?? 1);
  const hosts = hostsOf(flows).sort((p, q) => {
    const [a, b] = [worse(p), worse(q)];
    return (a === b ? 0 : b - a) || p.node - q.node;
  });
  const alone = hosts.some((host) => host.alone !== null);
  const heads = ["Sender", "Flows", "Sends, Gb/s", ...(alone ? ["Slowdown"] : [])];
  heads.push("Share delivered of offered", "Time held back", "Held back by");
  const last = heads.length - 1;
  const cells = heads.map((text, i) =>
    html("th", { scope: "col", class: i > 0 && i < last && "number" }, text),
  );
  const number = (text: string) => html("td", { class: "number" }, text);
  const row = (host: Host, i: number) => {
    const slowdown = slow(host);
    const share = host.share === null ? "–" : percent(host.share);
    const [root] = [...host.roots].sort((p, q) => q[1] - p[1]);
    const by = html("td", {}, root ? null : "–");
    if (root) {
      const button = html("button", { type: "button", class: "link" }, names.channel(root[0]));
      button.addEventListener("click", () => open(root[0]));
      by.append(button);
    }
    return html(
      "tr",
      { class: i < suffering && "suffers" },
      html("th", { scope: "row" }, names.node(host.node)),
      number(String(host.flows)),
      number(fixed(host.gbps, 2)),
      alone && html("td", { class: "number fate" }, slowdown === null ? "–" : times(slowdown)),
      html("td", { class: alone ? "number" : "number fate" }, share),
      number(percent(host.held)),
      by,
    );
  };
  const body = html("tbody", {});
  const show = (many: number) => body.replaceChildren(...hosts.slice(0, many).map(row));
  const head = html("thead", {}, html("tr", {}, ...cells));
  const whole = html("table", { class: "flows" }, head, body);
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": "Senders" };
  const shown = { first: Math.min(suffering, HOSTS_SHOWN), all: hosts.length };
  return unfolding(html("div", region, whole), show, shown);
}
