/** The fabric section: one map or two side by side, one slider, one reader pointing at both. */
import { Clock } from "./clock";
import { waitingRanks } from "./completion";
import type { Report, Variant } from "./data";
import { choice, html, section, type Choice } from "./dom";
import { FabricMap, type MapSettings, type Way } from "./fabric-map";
import { count } from "./format";
import { Inspector } from "./inspector";
import type { Metric } from "./load-scale";
import type { Selection } from "./map-find";
import type { Names } from "./names";
import { historyOf, type Channel } from "./over-time";
import { timeline } from "./timeline";
import { deadlockCycle } from "./tables";
import { treeLine } from "./tree-line";

const NONE = "none";

/** One map with what belongs to it. */
interface View {
  element: HTMLElement;
  map: FabricMap;
  variant: Variant;
  title: HTMLElement;
  trees: HTMLElement;
  paths: HTMLElement;
  deadlock: HTMLElement;
}

/** The section, and the variant that the rest of the page follows. */
export class FabricViews {
  readonly element: HTMLElement;
  readonly clock: Clock;
  private readonly settings: MapSettings;
  private readonly grid = html("div", { class: "maps" });
  private readonly views: View[] = [];
  private readonly inspector: Inspector;
  private readonly follow: ((variant: Variant) => void)[] = [];
  private readonly pickers: Choice<string>[] = [];

  constructor(
    private readonly report: Report,
    private readonly names: Names,
    first: Variant,
  ) {
    const histories = report.variants.flatMap((variant) => historyOf(variant) ?? []);
    const step = Math.min(...histories.map(({ dtUs }) => dtUs), Infinity);
    const end = Math.max(0, ...histories.map(({ dtUs, frames }) => dtUs * (frames - 1)));
    this.clock = new Clock(Number.isFinite(step) ? step : 1, end);
    // A hot receiver's congestion tree is made of links that wait, not of links that are busy.
    // So is a deadlock.
    const waits = ({ hosts_hot, deadlock }: Variant) => hosts_hot.length > 0 || deadlock !== null;
    const hot = report.variants.some(waits);
    const queueTop = Math.max(0, ...histories.map(({ queueMax }) => queueMax));
    this.settings = { metric: hot ? "wait" : "load", way: "busier", queueTop };
    this.inspector = new Inspector(report, names, this.clock, {
      pin: (links) => this.views.forEach(({ map }) => map.pin(links)),
      variants: () => this.views.map(({ variant }) => variant),
    });
    this.views.push(this.view(first));
    const shape = html("p", { class: "note beside-title" }, shapeOf(report));
    const keys = html("p", { id: "map-keys", class: "note" }, this.keysNote());
    // Only what decides what the map shows stands above it: it has to be on the first screen.
    const above = html("div", { class: "controls" }, this.variantChoice(), this.metricChoice());
    const below = html("div", { class: "controls" }, this.besideChoice(), this.wayChoice());
    this.element = section("fabric", "Fabric", shape, above, this.grid);
    if (histories.length > 0) {
      this.element.append(timeline(this.clock, this.element, oneSeed(report)));
    }
    this.element.append(below, keys, this.inspector.element);
    this.arrange();
    this.clock.onChange(() => this.paint());
  }

  /** Calls back when another variant is chosen for the first map. */
  onVariant(listener: (variant: Variant) => void): void {
    this.follow.push(listener);
  }

  /** Shows a variant on the first map, as if it had been chosen there. */
  choose(variant: Variant): void {
    const [view] = this.views;
    if (!view || view.variant === variant) return;
    this.set(view, variant);
    this.pickers[0]?.show(String(this.report.variants.indexOf(variant)));
    for (const listener of this.follow) listener(variant);
  }

  /** Marks a channel on the map and opens what is known about it. */
  open(channel: Channel): void {
    this.views[0]?.map.point(channel >> 1);
    this.inspector.openChannel(channel);
  }

  /** Marks the way of a flow and opens what is known about it. */
  openFlow(flow: number): void {
    this.element.scrollIntoView({ block: "nearest" });
    this.inspector.openFlow(flow);
  }

  private view(variant: Variant): View {
    const others = () => this.views.filter(({ map }) => map !== view.map);
    const map = new FabricMap(this.report, variant, this.settings, this.clock, {
      hover: (selection) => others().forEach(({ map }) => map.hover(selection)),
      pick: (selection) => this.pick(selection),
    });
    const title = html("h3", { class: "map-title" });
    const trees = html("p", { class: "trees" });
    const paths = html("p", { class: "note paths" });
    const deadlock = html("div", {});
    const parts = [title, map.element, trees, paths, deadlock];
    const element = html("div", { class: "view" }, ...parts);
    const view: View = { element, map, variant, title, trees, paths, deadlock };
    this.fill(view);
    return view;
  }

  private set(view: View, variant: Variant): void {
    view.variant = variant;
    view.map.show(variant);
    this.fill(view);
    this.inspector.refresh();
  }

  private fill(view: View): void {
    const cycle = deadlockCycle(view.variant) ?? waitingRanks(view.variant);
    view.title.textContent = view.variant.name;
    view.deadlock.replaceChildren(...(cycle ? [cycle] : []));
    const note = historyOf(view.variant)?.pathsNote ?? "";
    view.paths.textContent = note;
    view.paths.hidden = note === "";
    this.tell(view);
  }

  private tell(view: View): void {
    const { us } = this.clock;
    const ended = us !== null && historyOf(view.variant)?.frameAt(us) === null;
    const trees = view.map.trees();
    const said = treeLine(trees, this.names, (channel) => this.open(channel));
    view.trees.replaceChildren(...(ended ? ["This run has ended."] : said));
  }

  private pick(selection: Selection): void {
    if (selection.kind === "link") this.inspector.openLink(selection.link);
    else if (selection.kind === "node") this.inspector.openNode(selection.node);
    else this.inspector.openNode(selection.bar.node);
  }

  private paint(): void {
    for (const view of this.views) {
      view.map.paint();
      this.tell(view);
    }
  }

  private arrange(): void {
    this.grid.replaceChildren(...this.views.map(({ element }) => element));
    this.grid.classList.toggle("two", this.views.length > 1);
    this.element.classList.toggle("wide", this.views.length > 1);
  }

  private variantChoice(): HTMLElement | null {
    const { variants } = this.report;
    if (variants.length < 2) return null;
    const options = variants.map(({ name }, i) => ({ value: String(i), label: name }));
    const one = choice("map-variant", "Variant", options, "0", (value) => {
      const variant = variants[Number(value)];
      if (variant) this.choose(variant);
    });
    this.pickers.push(one);
    return one.element;
  }

  private besideChoice(): HTMLElement | null {
    const { variants } = this.report;
    if (variants.length < 2) return null;
    const options = variants.map(({ name }, i) => ({ value: String(i), label: name }));
    const none = { value: NONE, label: "nothing" };
    return choice("map-beside", "Show beside it", [none, ...options], NONE, (value) => {
      const variant = variants[Number(value)];
      const [, second] = this.views;
      if (!variant) this.views.splice(1);
      else if (second) this.set(second, variant);
      else this.views.push(this.view(variant));
      this.arrange();
      this.inspector.refresh();
    }).element;
  }

  private metricChoice(): HTMLElement {
    const metrics: { value: Metric; label: string }[] = [
      { value: "load", label: "Load" },
      { value: "wait", label: "Waiting for credits" },
    ];
    return choice("map-metric", "Colour links by", metrics, this.settings.metric, (value) => {
      this.settings.metric = value;
      this.paint();
    }).element;
  }

  private wayChoice(): HTMLElement | null {
    const lanes = this.views.some(({ map }) => map.layout.lanes);
    if (lanes || this.report.fabric.structure !== "tree") return null;
    const options: { value: Way; label: string }[] = [
      { value: "busier", label: "Worse of the two" },
      { value: "up", label: "Upwards" },
      { value: "down", label: "Downwards" },
    ];
    return choice("map-way", "Direction", options, this.settings.way, (way) => {
      this.settings.way = way;
      this.paint();
    }).element;
  }

  private keysNote(): string {
    const lanes = this.views.some(({ map }) => map.layout.lanes);
    const two = lanes ? "Each cable is drawn as two lines, one per direction. " : "";
    return (
      `${two}Point at a link or a switch to read its numbers; click it to list its flows. ` +
      "Keys on the map: left and right arrows step through the links, worst first; up and down " +
      "arrows step through the switches; Enter opens, Esc clears, space plays, comma and full " +
      "stop step in time."
    );
  }
}

function shapeOf(report: Report): string {
  const { structure, dims, levels } = report.fabric;
  if (structure === "grid" && dims) return `Grid of ${dims.join(" × ")} switches.`;
  if (structure === "tree" && levels) return `Tree with ${count(levels, "level")} of switches.`;
  const groups = report.fabric.groups?.length ?? 0;
  if (groups > 0) return `Irregular topology in ${count(groups, "group")} of switches.`;
  return "Irregular topology.";
}

/** What is shown over time is one seed's, where there are several: which one. */
function oneSeed(report: Report): string {
  const seed = report.variants.find((variant) => variant.seed != null)?.seed;
  return report.seeds.length > 1 && seed != null ? `, seed ${seed}` : "";
}
