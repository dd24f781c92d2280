/** A map of the fabric: draws a layout for a variant at an instant, answers to pointer and keys. */
import type { Clock } from "./clock";
import { treesAt, type Trees } from "./congestion-tree";
import type { Report, Variant } from "./data";
import { html, svg } from "./dom";
import { splitLinks, type SwitchLinks } from "./fabric-links";
import { layOut } from "./fabric-layout";
import type { Bar, Box, Layout, Line } from "./fabric-marks";
import { describe, spokenOf, type Shares } from "./map-details";
import { find, type Selection } from "./map-find";
import { drawGlow } from "./map-glow";
import { drawLegend, hotMarks, type LegendEntry } from "./map-legend";
import { barMark, boxParts, lineMark, placeBeside, type BoxMark } from "./map-marks";
import { CLASSES, classOf, rangeOf, thinning, widthOf, type Metric } from "./load-scale";
import { historyOf, type History } from "./over-time";
import { hasVictim, victimHosts } from "./victims";

/** Attributes of the name of a group. */
const GROUP = { class: "group", "text-anchor": "middle" };

/** Which direction colours a cable that is drawn as one line. */
export type Way = "busier" | "up" | "down";

/** What all maps of the page show alike. */
export interface MapSettings {
  metric: Metric;
  way: Way;
  /** Bytes that fill the box of a switch; 0 if no queue is known. */
  queueTop: number;
}

/** What a map tells the page. */
export interface MapEvents {
  hover(selection: Selection | null): void;
  pick(selection: Selection): void;
}

/** One map, of one variant. */
export class FabricMap {
  readonly element: HTMLElement;
  layout: Layout;
  private readonly links: SwitchLinks;
  private readonly stage = html("div", {
    class: "map-stage",
    tabindex: 0,
    role: "group",
    "aria-describedby": "map-keys",
  });
  private readonly legend = html("div", { class: "legend" });
  private readonly details = html("div", { class: "map-details", role: "status", hidden: true });
  private readonly overlay = svg("g", { class: "overlay" });
  private readonly glow = svg("g", { class: "glow" });
  private readonly pins = svg("g", { class: "pins" });
  private lines: { line: Line; mark: SVGElement }[] = [];
  private bars: { bar: Bar; mark: SVGRectElement }[] = [];
  private boxes: BoxMark[] = [];
  private selection: Selection | null = null;
  private history: History | null = null;
  /** The frame to show: null for the whole run, undefined after this variant's end. */
  private frame: number | null | undefined = null;
  private pinned: number[] = [];
  /** Hosts whose flows suffer over the whole run. */
  private victims = new Set<number>();
  /** Position of the keyboard in the links, worst first; -1 before the first key. */
  private step = -1;

  constructor(
    private readonly report: Report,
    private variant: Variant,
    private readonly settings: MapSettings,
    private readonly clock: Clock,
    private readonly events: MapEvents,
  ) {
    this.links = splitLinks(report.fabric);
    this.layout = layOut(report.fabric, 1000);
    this.victims = victimHosts(report, variant);
    this.readClock();
    const frame = html("div", { class: "map-frame" }, this.stage, this.details);
    this.element = html("div", { class: "map" }, frame, this.legend);
    this.listen();
    new ResizeObserver(() => this.fit()).observe(this.stage);
  }

  /** Shows another variant. */
  show(variant: Variant): void {
    this.variant = variant;
    this.victims = victimHosts(this.report, variant);
    this.readClock();
    this.draw();
  }

  /** Marks a link and says what it carries, as if the reader had pointed at it. */
  point(link: number): void {
    this.element.scrollIntoView({ block: "nearest" });
    this.hover({ kind: "link", link });
    this.stage.focus({ preventScroll: true });
  }

  /** Marks links until others are marked. */
  pin(links: number[]): void {
    this.pinned = links;
    this.drawPins();
  }

  /** Marks what the reader points at on this or another map. */
  hover(selection: Selection | null): void {
    if (selection?.kind === "bar") {
      const { node, noun } = selection.bar;
      const own = this.layout.bars.find((bar) => bar.node === node && bar.noun === noun);
      this.select(own ? { kind: "bar", bar: own } : null);
    } else {
      this.select(selection);
    }
  }

  private fit(): void {
    const width = Math.floor(this.stage.clientWidth);
    if (width < 50 || (width === this.layout.width && this.stage.childElementCount > 0)) return;
    this.layout = layOut(this.report.fabric, width);
    this.draw();
  }

  /** Reads the clock once for a whole picture. */
  private readClock(): void {
    const { us } = this.clock;
    this.history = historyOf(this.variant);
    this.frame = us === null || !this.history ? null : (this.history.frameAt(us) ?? undefined);
  }

  /** Load and waiting of a channel, as the map shows them now. */
  private readonly shares: Shares = {
    load: (channel) => this.shareIn("load", channel),
    wait: (channel) => this.shareIn("wait", channel),
  };

  private shareIn(metric: Metric, channel: number): number {
    const { frame, history } = this;
    if (history && typeof frame === "number") {
      return metric === "load" ? history.loadAt(channel, frame) : history.waitAt(channel, frame);
    }
    if (frame === undefined) return 0;
    const { forward, backward, wait_forward, wait_backward } = this.variant.links;
    const [there, back] =
      metric === "load" ? [forward, backward] : [wait_forward, wait_backward];
    return (channel & 1 ? back : there)[channel >> 1] ?? 0;
  }

  private shareOf(link: number, way: Line["way"]): number {
    const { metric } = this.settings;
    if (way === "forward") return this.shareIn(metric, 2 * link);
    if (way === "backward") return this.shareIn(metric, 2 * link + 1);
    const forward = this.shareIn(metric, 2 * link);
    const backward = this.shareIn(metric, 2 * link + 1);
    if (this.settings.way === "busier" || this.layout.lanes) return Math.max(forward, backward);
    return this.layout.forwardIsUp[link] === (this.settings.way === "up") ? forward : backward;
  }

  private shareOfBar(bar: Bar): number {
    return bar.links.reduce((most, link) => Math.max(most, this.shareOf(link, "both")), 0);
  }

  /** The congestion trees at this instant. */
  trees(): Trees | null {
    const { history, frame } = this;
    return history?.hasPaths && frame !== undefined ? treesAt(history, frame) : null;
  }

  /** Builds all marks anew, for another width or variant. */
  private draw(): void {
    const { width, height } = this.layout;
    const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    drawing.setAttribute("aria-hidden", "true");
    this.lines = this.layout.lines.map((line) => ({ line, mark: lineMark(line) }));
    const tracks: SVGElement[] = [];
    this.bars = this.layout.bars.map((bar) => {
      const isVictim = hasVictim(this.report, bar.links, this.victims);
      tracks.push(barMark(bar, 1, isVictim ? "track victim" : "track"));
      return { bar, mark: barMark(bar, 0, "") };
    });
    this.boxes = this.layout.boxes.map((box) => this.boxMark(box));
    drawing.append(
      this.glow,
      this.pins,
      svg("g", { class: "lines" }, ...this.lines.map(({ mark }) => mark)),
      svg("g", { class: "bars" }, ...tracks, ...this.bars.map(({ mark }) => mark)),
      svg("g", { class: "boxes" }, ...this.boxes.flatMap((mark) => boxParts(mark))),
      svg(
        "g",
        { class: "captions" },
        ...this.layout.captions.map(({ x, y, text, group }) =>
          svg("text", { x, y, ...(group ? GROUP : {}) }, text),
        ),
      ),
      hotMarks(this.report, this.variant, this.layout),
      this.overlay,
    );
    this.stage.replaceChildren(drawing);
    this.paint();
    this.drawPins();
  }

  /** Colours all marks for this instant and these settings. */
  paint(): void {
    this.readClock();
    const { metric } = this.settings;
    const lines = this.lines.map((entry) => ({
      ...entry,
      share: this.shareOf(entry.line.link, entry.line.way),
    }));
    // Loaded links last, so that nothing hides them.
    lines.sort((p, q) => p.share - q.share);
    for (const { line, mark, share } of lines) {
      const index = classOf(metric, share);
      mark.setAttribute("class", `ramp-${index}`);
      mark.setAttribute("stroke-width", String(this.widthOf(index, line)));
    }
    lines[0]?.mark.parentElement?.append(...lines.map(({ mark }) => mark));
    for (const { bar, mark } of this.bars) this.paintBar(bar, mark);
    for (const { box, fill } of this.boxes) this.paintQueue(box, fill);
    drawGlow(this.glow, this.layout, this.history, this.trees());
    this.stage.classList.toggle("ended", this.frame === undefined);
    this.stage.setAttribute("aria-label", spokenOf(this.report, this.variant));
    const queue = this.settings.queueTop > 0 && !this.layout.gathered ? this.settings.queueTop : 0;
    const { gathered } = this.layout;
    const more = { queue, trees: this.trees(), victims: this.victims.size > 0, gathered };
    this.legend.replaceChildren(
      ...drawLegend(metric, this.legendEntries(), this.variant, more),
    );
    if (this.selection) this.select(this.selection);
  }

  private paintBar(bar: Bar, mark: SVGElement): void {
    const share = this.shareOfBar(bar);
    const height = Math.max(1.5, Math.abs(bar.length) * Math.min(1, share));
    // The bar of a victim is red; its length is still its share.
    const isVictim = bar.noun === "" && hasVictim(this.report, bar.links, this.victims);
    const ramp = `ramp-${classOf(this.settings.metric, share)}`;
    mark.setAttribute("class", isVictim ? "victim" : ramp);
    mark.setAttribute("y", String(bar.length < 0 ? bar.y - height : bar.y));
    mark.setAttribute("height", String(height));
  }

  /** A switch fills up like a tank, from its lower edge. */
  private paintQueue(box: Box, fill: SVGElement): void {
    const { frame, history } = this;
    const { queueTop } = this.settings;
    const bytes = history && frame !== undefined ? history.queueAt(box.node, frame) : 0;
    const share = queueTop > 0 ? Math.min(1, bytes / queueTop) : 0;
    const height = (box.height - 1) * share;
    fill.setAttribute("y", String(box.y + box.height - 0.5 - height));
    fill.setAttribute("height", String(height));
  }

  private widthOf(index: number, { room = Infinity }: Line): number {
    const { lanes, lines, width } = this.layout;
    return Math.min(room, widthOf(index) * (lanes ? 1 : thinning(lines.length, width)));
  }

  private boxMark(box: Box): BoxMark {
    const { x, y, width, height, node } = box;
    const name = this.report.fabric.nodes[node]?.name;
    const stuck = this.variant.deadlock?.some((hop) => hop.switch === name) ?? false;
    const rect = svg("rect", { x, y, width, height, class: stuck ? "box stuck" : "box" });
    const inner = { x: x + 0.5, y: y + height, width: Math.max(0, width - 1), height: 0 };
    return { box, rect, fill: svg("rect", { ...inner, class: "queue" }) };
  }

  private legendEntries(): LegendEntry[] {
    const links = Array.from({ length: CLASSES }, () => 0);
    this.report.fabric.links.forEach((_, link) => {
      const index = classOf(this.settings.metric, this.shareOf(link, "both"));
      links[index] = (links[index] ?? 0) + 1;
    });
    return links.map((count, index) => {
      const width = widthOf(index);
      return { index, width, range: rangeOf(this.settings.metric, index), links: count };
    });
  }

  /** Links, worst first, for what the map shows now. */
  private ranking(): number[] {
    const shares = this.report.fabric.links.map((_, link) => this.shareOf(link, "both"));
    return shares
      .map((_, link) => link)
      .sort((p, q) => (shares[q] ?? 0) - (shares[p] ?? 0) || p - q);
  }

  private listen(): void {
    const under = (event: MouseEvent) => {
      const frame = this.stage.getBoundingClientRect();
      return find(this.layout, event.clientX - frame.left, event.clientY - frame.top);
    };
    const hover = (selection: Selection | null) => {
      this.select(selection);
      this.events.hover(selection);
    };
    this.stage.addEventListener("pointermove", (event) => hover(under(event)));
    this.stage.addEventListener("pointerleave", () => hover(null));
    this.stage.addEventListener("blur", () => hover(null));
    this.stage.addEventListener("click", (event) => {
      const selection = under(event);
      if (selection) this.events.pick(selection);
    });
    this.stage.addEventListener("keydown", (event) => this.key(event, hover));
  }

  private key(event: KeyboardEvent, hover: (selection: Selection | null) => void): void {
    const moves: Record<string, number> = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: 1,
      ArrowUp: -1,
    };
    if (event.key === "Escape") hover(null);
    if (event.key === "Enter" && this.selection) this.events.pick(this.selection);
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    const across = event.key === "ArrowRight" || event.key === "ArrowLeft";
    const kind = across ? "link" : "node";
    const items = across ? this.ranking() : this.layout.boxes.map((box) => box.node);
    if (items.length === 0) return;
    const kept = this.selection?.kind === kind;
    this.step = kept
      ? (this.step + move + items.length) % items.length
      : move < 0
        ? items.length - 1
        : 0;
    const item = items[this.step] ?? 0;
    hover(across ? { kind: "link", link: item } : { kind: "node", node: item });
  }

  private select(selection: Selection | null): void {
    this.selection = selection;
    this.overlay.replaceChildren();
    this.stage.classList.toggle("dimmed", selection !== null);
    this.details.hidden = selection === null;
    if (!selection) return;
    const members = this.members(selection);
    const lines = this.layout.lines.filter((line) => members.has(line.link));
    const bars = this.layout.bars.filter((bar) =>
      selection.kind === "bar"
        ? bar === selection.bar
        : bar.links.some((link) => members.has(link)),
    );
    for (const line of lines) {
      const mark = lineMark(line);
      const index = classOf(this.settings.metric, this.shareOf(line.link, line.way));
      mark.setAttribute("class", `ramp-${index}`);
      mark.setAttribute("stroke-width", String(this.widthOf(index, line)));
      this.overlay.append(mark);
    }
    for (const bar of bars) {
      const mark = barMark(bar, 0, "");
      this.paintBar(bar, mark);
      this.overlay.append(barMark(bar, 1, "track"), mark);
    }
    const nodes = selection.kind === "node" ? [selection.node] : this.ends(members);
    const boxes = this.layout.boxes.filter((box) => nodes.includes(box.node));
    for (const { x, y, width, height } of boxes) {
      this.overlay.append(svg("rect", { class: "ring", x, y, width, height }));
    }
    const { frame, history } = this;
    const queue = (node: number) =>
      history && frame !== undefined ? history.queueAt(node, frame) : null;
    const read = { ...this.shares, queue };
    this.details.replaceChildren(...describe(this.report, read, this.links, selection));
    placeBeside(this.details, this.layout, [lines, bars, boxes]);
  }

  private drawPins(): void {
    const pinned = new Set(this.pinned);
    const lines = this.layout.lines.filter((line) => pinned.has(line.link));
    const bars = this.layout.bars.filter((bar) => bar.links.some((link) => pinned.has(link)));
    this.pins.replaceChildren(
      ...lines.map((line) => lineMark(line)),
      ...bars.map((bar) => {
        const [x, width] = [bar.x - bar.width / 2 - 2, bar.width + 4];
        const y = Math.min(bar.y, bar.y + bar.length) - 2;
        return svg("rect", { x, y, width, height: Math.abs(bar.length) + 4 });
      }),
    );
  }

  private members(selection: Selection): Set<number> {
    if (selection.kind === "link") return new Set([selection.link]);
    if (selection.kind === "node") return new Set(this.links.all[selection.node]);
    return new Set(selection.bar.links);
  }

  private ends(members: Set<number>): number[] {
    if (members.size > 1) return [];
    return [...members].flatMap((link) => {
      const ends = this.report.fabric.links[link];
      return ends ? [ends.a, ends.b] : [];
    });
  }
}
