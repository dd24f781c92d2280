/** Series over time: one chart per variant on one scale, with a legend that is a table. */
import uPlot from "uplot";
import type { FlowClass, Report, Variant } from "./data";
import type { Clock } from "./clock";
import { choice, cssColor, html, section, svg } from "./dom";
import { fixed } from "./format";
import { drawIdeals, idealsOfFlows, idealsOfGroups, type Ideal } from "./ideals";
import { axisStyle, followClock, tickText } from "./time-chart";

/** A line of one variant. */
interface Line {
  name: string;
  class: FlowClass;
  /** One value per sample. */
  values: number[];
}

/** Something that has a line over time in some variants. */
interface Plotted {
  /** What tells it from the others. */
  key: string;
  /** What it is called among the others. */
  label: string;
  /** What the vertical axis says. */
  axis: string;
  decimals: number;
  lines: (variant: Variant) => Line[];
  /** What the lines could be. */
  ideals?: (variant: Variant) => Ideal[];
}

/** A section of charts. */
interface Charted {
  id: string;
  title: string;
  /** Name of the choice among `all`. */
  choice: string;
  note: string;
  variants: Variant[];
  /** How many seeds were run, of which the charts show one. */
  seeds: number;
  /** Whether the lines were observed: they have no class, and no time is simulated. */
  observed: boolean;
  /** Above the chart of a variant. */
  caption: (variant: Variant) => string;
  all: Plotted[];
}

/** A line of the charts, the same in every variant that has it. */
interface Entry {
  name: string;
  class: FlowClass;
  /** Custom property of its colour. */
  color: string;
  dash: number[];
  shown: boolean;
}

const SHADES = 3;
/** Dashes of a class, so that it is told by more than its colour; the next after every shade. */
const DASHES: Record<FlowClass, number[][]> = {
  hot: [[], [16, 3], [16, 3, 8, 3]],
  victim: [
    [7, 3],
    [7, 3, 2, 3],
    [5, 5],
  ],
  background: [
    [2, 2.5],
    [2, 5],
    [2, 2.5, 2, 7],
  ],
};

/** Observed lines of one class have nothing to be told by but their own colours, and dashes. */
const CURVES = 5;
const CURVE_DASHES: number[][] = [[], [7, 3], [2, 2.5], [16, 3, 8, 3]];

const LEGEND = "Press a name to hide or show its line. Means are over all samples.";

/** Throughput over time, or null if no variant has samples. */
export function throughput(report: Report, clock: Clock): HTMLElement | null {
  const { variants } = report;
  const lines = (kind: "groups" | "flows" | "links") => (variant: Variant) =>
    (variant.series[kind] ?? []).map(({ name, class: of, gbps }) => ({
      name,
      class: of,
      values: gbps,
    }));
  const unit = { axis: "Gb/s", decimals: 1 };
  return charted(clock, {
    id: "throughput",
    title: "Throughput over time",
    choice: "series-kind",
    observed: report.observed !== undefined,
    note: report.observed ? `${LEGEND} Throughput is payload.` :
      `${LEGEND} Throughput of groups and flows is delivered payload; dotted lines are what ` +
      "could be reached. Links are those between switches that carry anything, headers included: " +
      "at each time the busiest, the one that a quarter are busier than, and so on to the idlest.",
    variants,
    seeds: report.seeds.length,
    caption: (variant) => variant.name,
    all: [
      {
        ...unit,
        key: "groups",
        label: "Flow groups",
        lines: lines("groups"),
        ideals: (variant) => idealsOfGroups(report, variant),
      },
      {
        ...unit,
        key: "flows",
        label: "Single flows",
        lines: lines("flows"),
        ideals: () => idealsOfFlows(report),
      },
      { ...unit, key: "links", label: "Links between switches", lines: lines("links") },
    ],
  });
}

/** What congestion mechanisms did, or null if no variant has any. */
export function control(report: Report, clock: Clock): HTMLElement | null {
  const variants = report.variants.filter((variant) => variant.control);
  const quantities = variants.flatMap((variant) => variant.control?.quantities ?? []);
  const names = [...new Set(quantities.map(({ name }) => name))];
  const linesOf = (name: string) => (variant: Variant) =>
    variant.control?.quantities.find((quantity) => quantity.name === name)?.lines ?? [];
  return charted(clock, {
    id: "control",
    title: report.observed ? "Marks and notifications" : "Congestion control",
    choice: "control-kind",
    observed: report.observed !== undefined,
    note: report.observed
      ? LEGEND
      : `${LEGEND} Shown are the flows that were notified most, in the first seed.`,
    variants,
    seeds: report.seeds.length,
    caption: (variant) =>
      report.observed ? variant.name : `${variant.name}: ${variant.control?.mechanisms.join(", ")}`,
    all: names.map((name, i) => {
      const decimals = quantities.find((quantity) => quantity.name === name)?.decimals ?? 0;
      return { key: String(i), label: name, axis: name, decimals, lines: linesOf(name) };
    }),
  });
}

function charted(clock: Clock, charts: Charted): HTMLElement | null {
  const all = charts.all.filter(({ lines }) => charts.variants.some((v) => lines(v).length > 0));
  const [first] = all;
  if (!first) return null;
  const view = new Charts({ ...charts, all }, first, clock);
  const options = all.map(({ key, label }) => ({ value: key, label }));
  const pick = choice(charts.choice, "Show", options, first.key, (wanted) => {
    const plotted = all.find(({ key }) => key === wanted);
    if (plotted) view.show(plotted);
  });
  const controls = all.length > 1 && html("div", { class: "controls" }, pick.element);
  return section(charts.id, charts.title, controls, view.element);
}

class Charts {
  readonly element = html("div", {});
  private readonly grid = html("div", { class: "charts" });
  private readonly table = html("div", { class: "scroll", tabindex: 0, role: "region" });
  private entries: Entry[] = [];
  private plots: (uPlot | null)[] = [];
  private widths = 0;

  constructor(
    private readonly charts: Charted,
    private plotted: Plotted,
    private readonly clock: Clock,
  ) {
    this.table.setAttribute("aria-label", "Lines of the charts");
    this.element.append(this.grid, this.table, html("p", { class: "note" }, charts.note));
    this.entries = collect(charts, plotted);
    new ResizeObserver(() => {
      if (this.grid.clientWidth !== this.widths) this.draw();
    }).observe(this.grid);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(plotted: Plotted): void {
    this.plotted = plotted;
    this.entries = collect(this.charts, plotted);
    this.draw();
  }

  private draw(): void {
    this.widths = this.grid.clientWidth;
    if (this.widths < 50) return;
    const { variants } = this.charts;
    const most = Math.min(variants.length, Math.max(1, Math.floor(this.widths / 330)));
    // As many in every row as can be: four stand two by two, not three and one.
    const columns = Math.ceil(variants.length / Math.ceil(variants.length / most));
    const width = Math.floor((this.widths - (columns - 1) * 20) / columns);
    this.grid.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    for (const plot of this.plots) plot?.destroy();
    const figures = variants.map((variant) => this.figure(variant));
    this.grid.replaceChildren(...figures);
    this.plots = variants.map((variant, i) => {
      const holder = figures[i]?.lastElementChild;
      return holder instanceof HTMLElement ? this.plot(variant, holder, width, i) : null;
    });
    this.drawTable();
  }

  private figure(variant: Variant): HTMLElement {
    const { seeds } = this.charts;
    const several = seeds > 1 && variant.seed != null;
    const seed = several ? ` seed ${variant.seed} of ${seeds}` : "";
    const name = this.charts.caption(variant);
    const caption = html("figcaption", {}, name, html("span", { class: "quiet" }, seed));
    const means = this.entries.flatMap((entry) => {
      const mean = meanOf(lineOf(variant, this.plotted, entry));
      return mean === null ? [] : [`${entry.name} ${fixed(mean, this.plotted.decimals)}`];
    });
    const what = `${this.charts.title} of ${variant.name}`;
    const could = (this.plotted.ideals?.(variant) ?? []).map((ideal) => ideal.label);
    const mean = `means, ${this.plotted.axis}: ${means.join(", ")}`;
    const label = [what, mean, ...could].join("; ");
    return html("figure", {}, caption, html("div", { role: "img", "aria-label": label }));
  }

  /** Largest sample of the lines shown, over all variants, so that charts compare by eye. */
  private top(): number {
    let top = 0;
    for (const variant of this.charts.variants) {
      for (const { at } of this.plotted.ideals?.(variant) ?? []) top = Math.max(top, at(0));
      for (const entry of this.entries) {
        if (!entry.shown) continue;
        for (const value of lineOf(variant, this.plotted, entry)?.values ?? [])
          top = Math.max(top, value);
      }
    }
    return top > 0 ? top * 1.05 : 1;
  }

  private plot(variant: Variant, holder: HTMLElement, width: number, index: number): uPlot {
    const lines = this.entries.map((entry) => lineOf(variant, this.plotted, entry)?.values ?? []);
    const samples = Math.max(0, ...lines.map((line) => line.length));
    const { dt_us, start_us } = variant.series;
    const inMs = start_us + samples * dt_us >= 2000;
    const scale = inMs ? 1e-3 : 1;
    const time = Array.from({ length: samples }, (_, i) => (start_us + (i + 0.5) * dt_us) * scale);
    const since = this.charts.observed ? "since the start" : "of simulated time";
    const axis = axisStyle();
    const ideals = this.plotted.ideals?.(variant) ?? [];
    const ticks = { values: (_: uPlot, splits: number[]) => splits.map(tickText) };
    const options: uPlot.Options = {
      width,
      height: 220,
      legend: { show: false },
      cursor: { sync: { key: "time" }, y: false, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: () => [0, this.top()] } },
      axes: [
        {
          ...axis,
          ...ticks,
          label: `${inMs ? "ms" : "µs"} ${since}`,
          labelSize: 18,
          size: 26,
        },
        { ...axis, ...ticks, label: this.plotted.axis, labelSize: 18, size: 50 },
      ],
      series: [{}, ...this.entries.map((entry) => lineStyle(entry))],
      hooks: {
        setCursor: [(plot) => this.read(plot, index, inMs ? "ms" : "µs")],
        draw: [(plot) => drawIdeals(plot, ideals)],
      },
    };
    const columns = lines.map((line) => time.map((_, i) => line[i] ?? null));
    const plot = new uPlot(options, [time, ...columns], holder);
    followClock(plot, this.clock, inMs ? 1000 : 1);
    return plot;
  }

  private drawTable(): void {
    const { variants } = this.charts;
    const heads = variants.map((variant) =>
      html(
        "th",
        { scope: "col", class: "number" },
        variant.name,
        html("span", { class: "unit" }, "mean"),
      ),
    );
    const head = html(
      "tr",
      {},
      html("th", { scope: "col" }, "Line"),
      this.charts.observed ? null : html("th", { scope: "col" }, "Class"),
      ...heads,
    );
    const rows = this.entries.map((entry) => {
      const values = variants.map((variant) => {
        const mean = meanOf(lineOf(variant, this.plotted, entry));
        const text = mean === null ? "–" : fixed(mean, this.plotted.decimals);
        return html("td", { class: "number" }, text);
      });
      const name = html("th", { scope: "row" }, this.toggle(entry));
      const kind = { class: entry.class === "victim" ? "of-victim" : "quiet" };
      const of = this.charts.observed ? null : html("td", kind, entry.class);
      return html("tr", {}, name, of, ...values);
    });
    const body = html("tbody", {}, ...rows);
    this.table.replaceChildren(
      html("table", { class: "lines-table" }, html("thead", {}, head), body),
    );
  }

  private toggle(entry: Entry): HTMLElement {
    const line = svg("line", { x1: 0, x2: 28, y1: 6, y2: 6, "stroke-width": 2 });
    line.style.stroke = `var(${entry.color})`;
    if (entry.dash.length > 0) line.setAttribute("stroke-dasharray", entry.dash.join(" "));
    const sample = svg("svg", { width: 28, height: 12, "aria-hidden": "true" }, line);
    const pressed = { type: "button", class: "toggle", "aria-pressed": String(entry.shown) };
    const button = html("button", pressed, sample, entry.name);
    button.addEventListener("click", () => {
      entry.shown = !entry.shown;
      button.setAttribute("aria-pressed", String(entry.shown));
      const place = this.entries.indexOf(entry) + 1;
      for (const plot of this.plots) plot?.setSeries(place, { show: entry.shown });
    });
    return button;
  }

  /** While a cursor is on the charts, the table shows the values there instead of the means. */
  private read(plot: uPlot, index: number, unit: string): void {
    const at = plot.cursor.idx;
    const body = this.table.querySelector("tbody");
    const heads = this.table.querySelectorAll("thead .unit");
    const variant = this.charts.variants[index];
    const head = heads[index];
    if (!body || !variant || !head) return;
    const time = at == null ? undefined : plot.data[0]?.[at];
    head.textContent =
      time === undefined ? "mean" : `at ${fixed(time, unit === "ms" ? 2 : 0)} ${unit}`;
    this.entries.forEach((entry, row) => {
      const cell = body.rows[row]?.cells[index + (this.charts.observed ? 1 : 2)];
      if (!cell) return;
      const value =
        at == null || time === undefined
          ? meanOf(lineOf(variant, this.plotted, entry))
          : plot.data[row + 1]?.[at];
      cell.textContent = value == null ? "–" : fixed(value, this.plotted.decimals);
    });
  }
}

function lineStyle(entry: Entry): uPlot.Series {
  return {
    label: entry.name,
    show: entry.shown,
    stroke: cssColor(entry.color),
    width: 1.6,
    dash: entry.dash,
    points: { show: false },
  };
}

/** Every line of any variant, in the order of first appearance, each class in its own colours. */
function collect({ variants, observed }: Charted, plotted: Plotted): Entry[] {
  const lines = variants.flatMap((variant) => plotted.lines(variant));
  const isOneClass = observed && new Set(lines.map((line) => line.class)).size === 1;
  const entries = new Map<string, Entry>();
  const used: Record<FlowClass, number> = { hot: 0, victim: 0, background: 0 };
  for (const line of lines) {
    if (entries.has(line.name)) continue;
    const nth = used[line.class];
    used[line.class] += 1;
    const dash = isOneClass
      ? CURVE_DASHES[Math.floor(nth / CURVES) % CURVE_DASHES.length]
      : DASHES[line.class][Math.floor(nth / SHADES) % 3];
    entries.set(line.name, {
      name: line.name,
      class: line.class,
      color: isOneClass ? `--curve-${nth % CURVES}` : `--${line.class}-${nth % SHADES}`,
      dash: dash ?? [],
      shown: true,
    });
  }
  return [...entries.values()];
}

function lineOf(variant: Variant, plotted: Plotted, entry: Entry): Line | undefined {
  return plotted.lines(variant).find((line) => line.name === entry.name);
}

function meanOf(line: Line | undefined): number | null {
  if (!line || line.values.length === 0) return null;
  return line.values.reduce((sum, value) => sum + value, 0) / line.values.length;
}
