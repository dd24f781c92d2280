/** Reads the embedded results and builds the page from top to bottom. */
import { parseReport, type Report, type Variant } from "./data";
import { choice, html, section, type Choice } from "./dom";
import { FabricMap } from "./fabric-map";
import { headlineTable, masthead } from "./headline";
import { throughput } from "./series";
import * as tables from "./tables";

/** Everything below the masthead that follows the chosen variant. */
class VariantViews {
  readonly fabric: HTMLElement;
  readonly worst: HTMLElement;
  private readonly map: FabricMap;
  private readonly choices: Choice<string>[] = [];
  private readonly deadlock = html("div", {});
  private readonly links = html("div", {});

  constructor(
    private readonly report: Report,
    first: Variant,
  ) {
    this.map = new FabricMap(report, first);
    const shape = html("p", { class: "note under-title" }, shapeOf(report));
    this.fabric = section(
      "fabric",
      "Fabric",
      shape,
      this.picker("map"),
      this.deadlock,
      this.map.element,
    );
    this.worst = section("worst", "Worst links", this.picker("worst"), this.links);
    this.fill(first);
  }

  private picker(place: string): HTMLElement | null {
    const { variants } = this.report;
    if (variants.length < 2) return null;
    const options = variants.map(({ name }, i) => ({ value: String(i), label: name }));
    const made = choice(`${place}-variant`, "Variant", options, "0", (value) => {
      const variant = variants[Number(value)];
      if (!variant) return;
      for (const other of this.choices) other.show(value);
      this.map.show(variant);
      this.fill(variant);
    });
    this.choices.push(made);
    return html("div", { class: "controls" }, made.element);
  }

  private fill(variant: Variant): void {
    const cycle = tables.deadlockCycle(variant);
    this.deadlock.replaceChildren(...(cycle ? [cycle] : []));
    const rows = tables.worstLinks(this.report, variant, (link) => this.map.point(link));
    this.links.replaceChildren(rows);
  }
}

function shapeOf(report: Report): string {
  const { structure, dims, levels } = report.fabric;
  if (structure === "grid" && dims) return `Grid of ${dims.join(" × ")} switches.`;
  if (structure === "tree" && levels)
    return `Tree with ${levels} level${levels > 1 ? "s" : ""} of switches.`;
  return "Neither a tree nor a grid; drawn as its cables run.";
}

function build(report: Report): HTMLElement {
  const [first] = report.variants;
  if (!first) throw new Error("variants is empty; one is needed");
  const views = new VariantViews(report, first);
  const parts = [
    masthead(report),
    headlineTable(report),
    tables.publishedTable(report),
    views.fabric,
    throughput(report),
    views.worst,
    tables.facts(report),
    tables.notModelled(report),
    tables.reproduce(report),
  ];
  return html("main", {}, ...parts);
}

function start(): void {
  const text = document.getElementById("data")?.textContent ?? "";
  try {
    const report = parseReport(text);
    document.title = `${report.title} – Clearlane`;
    document.body.append(build(report));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const words = `This report cannot be shown: ${why}.`;
    document.body.append(html("main", {}, html("p", { class: "failure", role: "alert" }, words)));
  }
  document.documentElement.dataset["ready"] = "";
}

start();
