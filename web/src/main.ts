/** Reads the embedded results and builds the page from top to bottom. */
import { Clock } from "./clock";
import { completion } from "./completion";
import { curves } from "./curves";
import { parseReport, type Report, type Variant } from "./data";
import { choice, html, section } from "./dom";
import { FabricViews } from "./fabric-views";
import { headlineTable, masthead } from "./headline";
import { Names } from "./names";
import { channelOf } from "./over-time";
import { control, throughput } from "./series";
import { whoSuffers } from "./sufferers";
import * as tables from "./tables";

/** The worst links of the variant that the first map shows. */
function worst(report: Report, names: Names, views: FabricViews, first: Variant): HTMLElement {
  const { variants } = report;
  const links = html("div", {});
  const fill = (variant: Variant) => {
    const open = (link: number, direction: "forward" | "backward") =>
      views.open(channelOf(link, direction));
    links.replaceChildren(tables.worstLinks(report, names, variant, open));
  };
  fill(first);
  const options = variants.map(({ name }, i) => ({ value: String(i), label: name }));
  const pick = choice("worst-variant", "Variant", options, "0", (value) => {
    const variant = variants[Number(value)];
    if (variant) views.choose(variant);
  });
  views.onVariant((variant) => {
    pick.show(String(variants.indexOf(variant)));
    fill(variant);
  });
  const controls = variants.length > 1 && html("div", { class: "controls" }, pick.element);
  return section("worst", "Worst links", controls, links);
}

/** The map and the results first: what a reader sees before the first scroll. */
function runParts(report: Report, first: Variant): (HTMLElement | null)[] {
  const names = new Names(report);
  const views = new FabricViews(report, names, first);
  return [
    views.element,
    ...results(report),
    whoSuffers(report, names, views),
    throughput(report, views.clock),
    control(report, views.clock),
    worst(report, names, views, first),
  ];
}

/** Records of flows: a table, and charts over time. No fabric is known. */
function observedParts(report: Report): (HTMLElement | null)[] {
  const slice = Math.max(...report.variants.map(({ series }) => series.dt_us));
  const lengths = report.variants.map(({ series }) =>
    Math.max(0, ...series.flows.map(({ gbps }) => gbps.length * series.dt_us)),
  );
  const clock = new Clock(slice, Math.max(...lengths));
  return [...results(report), throughput(report, clock), control(report, clock)];
}

const CURVES_NOTE =
  "A line joins the variants that differ only in the load they offer. Bars are 95 % confidence " +
  "intervals over the seeds.";

/** What was varied, and what the marks are. */
function sweepNote({ seeds, sweep }: Report): string {
  const varied = (sweep?.axes ?? []).map(({ key, values }) => `${key} (${values.length} values)`);
  const means = seeds.length > 1
    ? `Means over ${seeds.length} seeds; bars are 95 % confidence intervals.`
    : "One seed, so no interval.";
  return `Varied: ${varied.join(", ")}. ${means}`;
}

/** What was measured, in tables and curves. */
function results(report: Report): (HTMLElement | null)[] {
  return [
    report.headline.rows.length > 0 ? headlineTable(report) : null,
    completion(report),
    report.sweep ? curves("sweep", "Sweep", sweepNote(report), report.sweep) : null,
    tables.publishedTable(report),
    report.curves ? curves("curves", "Load curves", CURVES_NOTE, report.curves) : null,
  ];
}

function body(report: Report): (HTMLElement | null)[] {
  const [first] = report.variants;
  if (first && report.observed) return observedParts(report);
  return first ? runParts(report, first) : [...results(report), tables.remarks(report)];
}

function build(report: Report): HTMLElement {
  const parts = [
    masthead(report),
    ...body(report),
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
