/** What the reader opened: a channel, a switch or a flow, over time and with its flows. */
import type { Clock } from "./clock";
import type { Report, Variant } from "./data";
import { choice, html, type Child } from "./dom";
import { splitLinks } from "./fabric-links";
import { flowTable, type FlowColumns } from "./flow-table";
import { bytes, count, percent, rate, times } from "./format";
import { level } from "./ideals";
import type { Names } from "./names";
import { historyOf, slowdownOf, type Channel, type Flow, type History } from "./over-time";
import { timeChart } from "./time-chart";

/** What is open. Flows are told by their ends, so that two variants show the same one. */
type Opened =
  | { kind: "channel"; channel: Channel }
  | { kind: "node"; node: number }
  | { kind: "flow"; group: number; from: number; to: number };

/** What the inspector needs of the maps. */
export interface InspectorMaps {
  pin(links: number[]): void;
  variants(): Variant[];
}

const CHANNELS_SHOWN = 12;

/** The panel below the maps; hidden until something is opened. */
export class Inspector {
  readonly element = html("div", { class: "inspector", hidden: true, tabindex: -1 });
  private opened: Opened | null = null;

  constructor(
    private readonly report: Report,
    private readonly names: Names,
    private readonly clock: Clock,
    private readonly maps: InspectorMaps,
  ) {
    this.element.setAttribute("aria-label", "Details");
    this.element.setAttribute("role", "region");
  }

  /** Opens the direction of a link that does more. */
  openLink(link: number): void {
    const [variant] = this.maps.variants();
    if (!variant) return;
    const { forward, backward, wait_forward, wait_backward } = variant.links;
    const there = (forward[link] ?? 0) + (wait_forward[link] ?? 0);
    const back = (backward[link] ?? 0) + (wait_backward[link] ?? 0);
    this.openChannel(2 * link + Number(back > there));
  }

  openChannel(channel: Channel): void {
    this.open({ kind: "channel", channel });
  }

  /** Opens a switch, or the link of a host. */
  openNode(node: number): void {
    if (this.report.fabric.nodes[node]?.kind === "switch") {
      this.open({ kind: "node", node });
      return;
    }
    const [link] = splitLinks(this.report.fabric).all[node] ?? [];
    if (link !== undefined) this.openLink(link);
  }

  /** Opens a flow of the first map's variant. */
  openFlow(index: number): void {
    const [variant] = this.maps.variants();
    const flow = variant && historyOf(variant)?.flows[index];
    if (flow) this.open({ kind: "flow", group: flow.group, from: flow.from, to: flow.to });
  }

  /** Shows the same for the variants that are on the maps now. */
  refresh(): void {
    if (this.opened) this.render(this.opened);
  }

  private open(opened: Opened): void {
    this.opened = opened;
    this.render(opened);
  }

  private close(): void {
    this.opened = null;
    this.element.hidden = true;
    this.element.replaceChildren();
    this.maps.pin([]);
  }

  private render(opened: Opened): void {
    const close = html("button", { type: "button", class: "close" }, "Close");
    close.addEventListener("click", () => this.close());
    const variants = this.maps.variants();
    const columns = variants.map((variant) => {
      const history = historyOf(variant);
      const name = variants.length > 1 && html("h4", {}, variant.name);
      const body = history ? this.column(opened, variant, history) : ["No record over time."];
      return html("div", { class: "column" }, name, ...body);
    });
    const [title, more] = this.title(opened);
    this.element.replaceChildren(
      html("div", { class: "inspector-head" }, html("h3", {}, title), more, close),
      html("div", { class: variants.length > 1 ? "columns two" : "columns" }, ...columns),
    );
    this.element.hidden = false;
    this.maps.pin(this.linksOf(opened));
  }

  private title(opened: Opened): [string, Child] {
    if (opened.kind === "node") return [this.names.node(opened.node), null];
    if (opened.kind === "flow") {
      const group = this.report.variants[0]?.series.groups[opened.group]?.name ?? "";
      const ends = `${this.names.node(opened.from)} → ${this.names.node(opened.to)}`;
      return [`Flow ${ends}`, html("span", { class: "quiet" }, group)];
    }
    const { channel } = opened;
    const link = channel >> 1;
    const options = [2 * link, 2 * link + 1].map((value) => {
      return { value: String(value), label: this.directionOf(value) };
    });
    const pick = choice("direction", "Direction", options, String(channel), (value) =>
      this.openChannel(Number(value)),
    );
    return [this.names.channel(channel), pick.element];
  }

  private directionOf(channel: Channel): string {
    const [from, to] = this.names.ends(channel);
    const { nodes } = this.report.fabric;
    if (nodes[from]?.kind === "host" && nodes[to]?.kind === "switch") return "sends";
    if (nodes[to]?.kind === "host" && nodes[from]?.kind === "switch") return "receives";
    return `to ${this.names.node(to)}`;
  }

  private linksOf(opened: Opened): number[] {
    if (opened.kind === "channel") return [opened.channel >> 1];
    if (opened.kind === "node") return [];
    const [variant] = this.maps.variants();
    const flow = variant && this.find(historyOf(variant), opened);
    return flow ? flow.path.map((channel) => channel >> 1) : [];
  }

  private find(history: History | null, opened: Opened): Flow | null {
    if (opened.kind !== "flow") return null;
    const { group, from, to } = opened;
    const same = (flow: Flow) => flow.group === group && flow.from === from && flow.to === to;
    return history?.flows.find(same) ?? null;
  }

  private column(opened: Opened, variant: Variant, history: History): Child[] {
    if (opened.kind === "channel") return this.channelColumn(opened.channel, variant, history);
    if (opened.kind === "node") return this.nodeColumn(opened.node, variant, history);
    const flow = this.find(history, opened);
    if (!flow) return [html("p", { class: "note" }, "This variant did not record the flow.")];
    return this.flowColumn(flow, variant, history);
  }

  private channelColumn(channel: Channel, variant: Variant, history: History): Child[] {
    const frames = Array.from({ length: history.frames }, (_, frame) => frame);
    const { links } = variant;
    const [load, wait] =
      channel & 1 ? [links.backward, links.wait_backward] : [links.forward, links.wait_forward];
    const link = channel >> 1;
    const gbps = this.report.fabric.links[link]?.gbps ?? 0;
    const share = load[link] ?? 0;
    const said = `${percent(share)} used, ${rate(share * gbps)} of ${rate(gbps)}`;
    const held = `${percent(wait[link] ?? 0)} of the time held back`;
    const [, to] = this.names.ends(channel);
    const charts = [
      timeChart(this.clock, {
        label: `Load and waiting of ${this.names.channel(channel)} over time`,
        dtUs: history.dtUs,
        unit: "% of time",
        top: 105,
        ideals: [level(`full: the link's rate, ${rate(gbps)}`, 100)],
        lines: [
          {
            label: "load",
            color: "--line-load",
            dash: [],
            values: frames.map((frame) => 100 * history.loadAt(channel, frame)),
          },
          {
            label: "waiting for credits",
            color: "--line-wait",
            dash: [6, 3],
            values: frames.map((frame) => 100 * history.waitAt(channel, frame)),
          },
        ],
      }),
    ];
    if (this.report.fabric.nodes[to]?.kind === "switch") charts.push(this.queueChart(to, history));
    const flows = history.crossingOf(channel);
    return [
      html("p", { class: "said" }, `${said}; ${held}.`),
      ...charts,
      ...this.flows(flows, variant, history),
    ];
  }

  private queueChart(node: number, history: History): HTMLElement {
    const values = Array.from({ length: history.frames }, (_, frame) =>
      history.queueAt(node, frame),
    );
    const name = this.names.node(node);
    return timeChart(this.clock, {
      label: `Bytes queued in ${name} over time`,
      dtUs: history.dtUs,
      unit: "KiB",
      lines: [
        {
          label: `bytes queued in ${name}`,
          color: "--line-queue",
          dash: [],
          values: values.map((value) => value / 1024),
        },
      ],
    });
  }

  private flows(flows: Flow[], variant: Variant, history: History): Child[] {
    if (!history.hasPaths) {
      return [html("p", { class: "note" }, history.pathsNote ?? "No path is known.")];
    }
    if (!history.flowsRecorded) {
      return [html("p", { class: "note" }, "There are too many flows to record each of them.")];
    }
    const part =
      history.flows.length < history.flowsTotal
        ? ` of the ${history.flows.length} in this report; the run had ${history.flowsTotal}`
        : "";
    const title = html("h4", {}, `${count(flows.length, "flow")}${part}`);
    const note = history.pathsNote && html("p", { class: "note" }, history.pathsNote);
    return [title, note, flowTable(flows, this.columns(variant), "Flows on it")];
  }

  private columns(variant: Variant): FlowColumns {
    return {
      names: this.names,
      groups: variant.series.groups,
      openFlow: ({ group, from, to }) => this.open({ kind: "flow", group, from, to }),
      openRoot: (channel) => this.openChannel(channel),
    };
  }

  private nodeColumn(node: number, variant: Variant, history: History): Child[] {
    const { links } = variant;
    const all = (splitLinks(this.report.fabric).all[node] ?? []).map((link) => {
      const out = 2 * link + Number(this.report.fabric.links[link]?.a !== node);
      const [load, wait] =
        out & 1 ? [links.backward, links.wait_backward] : [links.forward, links.wait_forward];
      return { out, load: load[link] ?? 0, wait: wait[link] ?? 0 };
    });
    all.sort((p, q) => q.load + q.wait - p.load - p.wait || p.out - q.out);
    const rows = all.slice(0, CHANNELS_SHOWN).map(({ out, load, wait }) => {
      const name = this.names.channel(out);
      const button = html("button", { type: "button", class: "link" }, name);
      button.addEventListener("click", () => this.openChannel(out));
      return html(
        "tr",
        {},
        html("th", { scope: "row" }, button),
        html("td", { class: "number" }, percent(load)),
        html("td", { class: "number" }, percent(wait)),
      );
    });
    const heads = ["Output", "Load", "Waits for credits"].map((text, i) =>
      html("th", { scope: "col", class: i > 0 && "number" }, text),
    );
    const head = html("thead", {}, html("tr", {}, ...heads));
    const rest = all.length - rows.length;
    const others = `${count(rest, "output")} more with less load.`;
    const more = rest > 0 && html("p", { class: "note" }, others);
    const most = Math.max(0, ...Array.from({ length: history.frames }, (_, frame) =>
      history.queueAt(node, frame),
    ));
    const mean = history.queueAt(node, null);
    return [
      html("p", { class: "said" }, `${bytes(mean)} queued on average, ${bytes(most)} at most.`),
      this.queueChart(node, history),
      html("table", {}, head, html("tbody", {}, ...rows)),
      more,
    ];
  }

  private flowColumn(flow: Flow, variant: Variant, history: History): Child[] {
    const values = Array.from({ length: history.frames }, (_, frame) =>
      history.gbpsAt(flow.index, frame),
    );
    const kind = variant.series.groups[flow.group]?.class ?? "background";
    const alone = flow.aloneGbps;
    const slowdown = slowdownOf(flow);
    const than = alone !== null && `, ${rate(alone)} without the hot flows`;
    const much = slowdown === null ? "" : times(slowdown);
    const slower = much && (slowdown === Infinity ? `: ${much}` : `: ${much} slower`);
    const gets = flow.share === null ? "" : percent(flow.share);
    const offers = gets && `; its sender is delivered ${gets} of what it offers`;
    const acks = flow.acksHeld > 0 ? `, its acknowledgements ${percent(flow.acksHeld)}` : "";
    const held = `Held back ${percent(flow.held)} of the time${acks}`;
    const by = flow.root === null ? "." : `, most often by ${this.names.channel(flow.root)}.`;
    const steps = flow.path.map((channel) => {
      const step = html("button", { type: "button", class: "link" }, this.names.channel(channel));
      step.addEventListener("click", () => this.openChannel(channel));
      return html("li", {}, step);
    });
    const parts = [rate(flow.gbps), than, slower, offers, "."].filter(Boolean).join("");
    return [
      html("p", { class: "said" }, parts),
      html("p", { class: "said" }, held, by),
      timeChart(this.clock, {
        label: `Throughput of the flow over time, variant ${variant.name}`,
        dtUs: history.dtUs,
        unit: "Gb/s",
        ideals: alone === null ? [] : [level(`without the hot flows: ${rate(alone)}`, alone)],
        lines: [{ label: "throughput", color: `--${kind}-0`, dash: [], values }],
      }),
      steps.length > 0 && html("ol", { class: "path" }, ...steps),
    ];
  }
}
