/** The map of the fabric: draws a layout for a variant, and answers to pointer and keys. */
import type { Report, Variant } from "./data";
import { choice, html, svg } from "./dom";
import { splitLinks, type SwitchLinks } from "./fabric-links";
import { layOut } from "./fabric-layout";
import type { Bar, Box, Layout, Line } from "./fabric-marks";
import { count } from "./format";
import { describe } from "./map-details";
import { find, type Selection } from "./map-find";
import { drawLegend, hotMarks, type LegendEntry } from "./map-legend";
import { CLASSES, classOf, rangeOf, thinning, widthOf, type Metric } from "./load-scale";

/** Which direction colours a cable that is drawn as one line. */
export type Way = "busier" | "up" | "down";

/** Share of a link in a direction, for what the map shows now. */
export type ShareOf = (link: number, way: Line["way"]) => number;

/** The map with its controls. */
export class FabricMap {
  readonly element: HTMLElement;
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
  private layout: Layout;
  private metric: Metric = "load";
  private way: Way = "busier";
  private selection: Selection | null = null;
  /** Position of the keyboard in the links, worst first; -1 before the first key. */
  private step = -1;

  constructor(
    private readonly report: Report,
    private variant: Variant,
  ) {
    // A hot receiver's congestion tree is made of links that wait, not of links that are busy.
    if (report.variants.some(({ hosts_hot }) => hosts_hot.length > 0)) this.metric = "wait";
    this.links = splitLinks(report.fabric);
    this.layout = layOut(report.fabric, 1000);
    const keys = html("p", { id: "map-keys", class: "note" }, this.keysNote());
    const controls = html("div", { class: "controls" }, this.metricChoice(), this.wayChoice());
    const frame = html("div", { class: "map-frame" }, this.stage, this.details);
    this.element = html("div", { class: "map" }, controls, this.legend, frame, keys);
    this.listen();
    new ResizeObserver(() => this.fit()).observe(this.stage);
  }

  /** Draws another variant. */
  show(variant: Variant): void {
    this.variant = variant;
    this.draw();
  }

  /** Marks a link and says what it carries, as if the reader had pointed at it. */
  point(link: number): void {
    this.element.scrollIntoView({ block: "nearest" });
    this.select({ kind: "link", link });
    this.stage.focus({ preventScroll: true });
  }

  private keysNote(): string {
    const lanes = this.layout.lanes ? "Each cable has two lanes; traffic keeps right. " : "";
    const step =
      "right and left arrow step through the links, worst first; up and down, the switches";
    return `${lanes}Point at a link or a switch for its numbers. Keyboard: ${step}; Esc clears.`;
  }

  private metricChoice(): HTMLElement {
    const options: { value: Metric; label: string }[] = [
      { value: "load", label: "Load" },
      { value: "wait", label: "Waiting for credits" },
    ];
    return choice("map-metric", "Colour by", options, this.metric, (metric) => {
      this.metric = metric;
      this.draw();
    }).element;
  }

  private wayChoice(): HTMLElement | null {
    if (this.layout.lanes || this.report.fabric.structure !== "tree") return null;
    const options: { value: Way; label: string }[] = [
      { value: "busier", label: "Worse of both" },
      { value: "up", label: "Upwards" },
      { value: "down", label: "Downwards" },
    ];
    return choice("map-way", "Direction", options, this.way, (way) => {
      this.way = way;
      this.draw();
    }).element;
  }

  private fit(): void {
    const width = Math.floor(this.stage.clientWidth);
    if (width < 50 || (width === this.layout.width && this.stage.childElementCount > 0)) return;
    this.layout = layOut(this.report.fabric, width);
    this.draw();
  }

  private readonly shareOf: ShareOf = (link, way) => {
    const { links } = this.variant;
    const load = this.metric === "load";
    const forward = (load ? links.forward : links.wait_forward)[link] ?? 0;
    const backward = (load ? links.backward : links.wait_backward)[link] ?? 0;
    if (way === "forward") return forward;
    if (way === "backward") return backward;
    if (this.way === "busier" || this.layout.lanes) return Math.max(forward, backward);
    return this.layout.forwardIsUp[link] === (this.way === "up") ? forward : backward;
  };

  private shareOfBar(bar: Bar): number {
    return bar.links.reduce((most, link) => Math.max(most, this.shareOf(link, "both")), 0);
  }

  private draw(): void {
    const { width, height } = this.layout;
    const lines = this.layout.lines.map((line) => ({
      line,
      share: this.shareOf(line.link, line.way),
    }));
    // Loaded links last, so that nothing hides them.
    lines.sort((p, q) => p.share - q.share);
    const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    drawing.setAttribute("aria-hidden", "true");
    drawing.append(
      svg("g", { class: "lines" }, ...lines.map(({ line, share }) => this.drawLine(line, share))),
      svg("g", { class: "bars" }, ...this.layout.bars.flatMap((bar) => this.drawBar(bar))),
      svg("g", { class: "boxes" }, ...this.layout.boxes.flatMap((box) => this.drawBox(box))),
      svg(
        "g",
        { class: "captions" },
        ...this.layout.captions.map(({ x, y, text }) => svg("text", { x, y }, text)),
      ),
      hotMarks(this.report, this.variant, this.layout),
      this.overlay,
    );
    this.stage.replaceChildren(drawing);
    this.stage.setAttribute("aria-label", this.spoken());
    this.legend.replaceChildren(...drawLegend(this.metric, this.legendEntries(), this.variant));
    this.select(this.selection);
  }

  private drawLine(line: Line, share: number): SVGElement {
    const index = classOf(this.metric, share);
    const { x1, y1, x2, y2 } = line;
    const stroke = { class: `ramp-${index}`, "stroke-width": this.widthOf(index) };
    return svg("line", { x1, y1, x2, y2, ...stroke });
  }

  private widthOf(index: number): number {
    const { lanes, lines, width } = this.layout;
    return widthOf(index) * (lanes ? 1 : thinning(lines.length, width));
  }

  private drawBar(bar: Bar): SVGElement[] {
    const share = this.shareOfBar(bar);
    const height = Math.max(1.5, Math.abs(bar.length) * Math.min(1, share));
    const x = bar.x - bar.width / 2;
    const track = Math.abs(bar.length);
    const from = (size: number) => (bar.length < 0 ? bar.y - size : bar.y);
    const width = bar.width;
    return [
      svg("rect", { class: "track", x, y: from(track), width, height: track }),
      svg("rect", {
        class: `ramp-${classOf(this.metric, share)}`,
        x,
        y: from(height),
        width,
        height,
      }),
    ];
  }

  private drawBox(box: Box): SVGElement[] {
    const { x, y, width, height, node, label } = box;
    const name = this.report.fabric.nodes[node]?.name;
    const stuck = this.variant.deadlock?.some((hop) => hop.switch === name) ?? false;
    const rect = svg("rect", { x, y, width, height, class: stuck ? "box stuck" : "box" });
    if (!label) return [rect];
    return [rect, svg("text", { x: x + width / 2, y: y + height / 2 + 3.6 }, label)];
  }

  private legendEntries(): LegendEntry[] {
    const links = Array.from({ length: CLASSES }, () => 0);
    this.report.fabric.links.forEach((_, link) => {
      const index = classOf(this.metric, this.shareOf(link, "both"));
      links[index] = (links[index] ?? 0) + 1;
    });
    return links.map((count, index) => {
      const width = widthOf(index);
      return { index, width, range: rangeOf(this.metric, index), links: count };
    });
  }

  private spoken(): string {
    const { fabric } = this.report;
    const switches = fabric.nodes.filter((node) => node.kind === "switch").length;
    const hosts = fabric.nodes.length - switches;
    const size = `${count(switches, "switch")}, ${count(hosts, "host")}`;
    const [worst = 0] = this.ranking();
    const name = fabric.links[worst]?.name ?? "none";
    return `Map of the fabric, variant ${this.variant.name}: ${size}; worst link ${name}`;
  }

  /** Links, worst first, for what the map shows now. */
  private ranking(): number[] {
    const shares = this.report.fabric.links.map((_, link) => this.shareOf(link, "both"));
    return shares
      .map((_, link) => link)
      .sort((p, q) => (shares[q] ?? 0) - (shares[p] ?? 0) || p - q);
  }

  private listen(): void {
    this.stage.addEventListener("pointermove", (event) => {
      const frame = this.stage.getBoundingClientRect();
      this.select(find(this.layout, event.clientX - frame.left, event.clientY - frame.top));
    });
    this.stage.addEventListener("pointerleave", () => this.select(null));
    this.stage.addEventListener("blur", () => this.select(null));
    this.stage.addEventListener("keydown", (event) => this.key(event));
  }

  private key(event: KeyboardEvent): void {
    const moves: Record<string, number> = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: 1,
      ArrowUp: -1,
    };
    const move = moves[event.key];
    if (event.key === "Escape") this.select(null);
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
    this.select(across ? { kind: "link", link: item } : { kind: "node", node: item });
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
    this.overlay.append(
      ...lines.map((line) => this.drawLine(line, this.shareOf(line.link, line.way))),
      ...bars.flatMap((bar) => this.drawBar(bar)),
    );
    const nodes = selection.kind === "node" ? [selection.node] : this.ends(members);
    const boxes = this.layout.boxes.filter((box) => nodes.includes(box.node));
    for (const { x, y, width, height } of boxes) {
      this.overlay.append(svg("rect", { class: "ring", x, y, width, height }));
    }
    const text = describe(this.report, this.variant, this.links, selection);
    this.details.replaceChildren(...text);
    this.place(boxes, lines, bars);
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

  /** Puts the details beside what is selected, inside the frame. */
  private place(boxes: Box[], lines: Line[], bars: Bar[]): void {
    const xs = [
      ...lines.flatMap((line) => [line.x1, line.x2]),
      ...bars.map((bar) => bar.x),
      ...boxes.map((box) => box.x + box.width / 2),
    ];
    const middle = xs.reduce((sum, x) => sum + x, 0) / Math.max(1, xs.length);
    const width = this.details.offsetWidth;
    const height = this.details.offsetHeight;
    const rightHalf = middle > this.layout.width / 2;
    const x = rightHalf ? Math.min(...xs) - width - 18 : Math.max(...xs) + 18;
    const left = Math.min(Math.max(0, x), Math.max(0, this.layout.width - width));
    const ys = [...lines.flatMap((line) => [line.y1, line.y2]), ...bars.map((bar) => bar.y)];
    const center = ys.reduce((sum, y) => sum + y, 0) / Math.max(1, ys.length);
    const top = Math.min(
      Math.max(0, center - height / 2),
      Math.max(0, this.layout.height - height),
    );
    this.details.style.left = `${left}px`;
    this.details.style.top = `${top}px`;
  }
}
