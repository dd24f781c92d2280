/** Line charts over simulated time that show the page's instant and let the reader choose it. */
import uPlot from "uplot";
import type { Clock } from "./clock";
import { cssColor, html, svg } from "./dom";
import { fixed } from "./format";
import { drawIdeals, type Ideal } from "./ideals";

/** One line. */
export interface TimeLine {
  label: string;
  /** A custom property. */
  color: string;
  dash: number[];
  /** One value per frame. */
  values: number[];
}

/** What a chart shows. */
export interface TimeChartOptions {
  /** What a screen reader is told. */
  label: string;
  dtUs: number;
  unit: string;
  /** Top of the scale; without it, the largest value. */
  top?: number;
  lines: TimeLine[];
  /** What the lines could be. */
  ideals?: Ideal[];
}

const HEIGHT = 150;

/** Axes of every chart of the page. */
export function axisStyle() {
  return {
    stroke: cssColor("--muted"),
    font: "11px system-ui, sans-serif",
    labelFont: "11px system-ui, sans-serif",
    grid: { stroke: cssColor("--rule"), width: 1 },
    ticks: { stroke: cssColor("--rule"), width: 1, size: 4 },
  };
}

/** A tick with no more decimals than it needs. */
export function tickText(value: number): string {
  const rounded = Math.round(value * 1e6) / 1e6;
  const decimals = Number.isInteger(rounded) ? 0 : Math.abs(rounded) < 0.1 ? 3 : 2;
  const text = fixed(rounded, decimals);
  return decimals > 0 ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

/** A mark at the instant of the clock; a click on the plot shows that instant. */
export function followClock(plot: uPlot, clock: Clock, usPerUnit: number): void {
  const mark = html("div", { class: "instant" });
  plot.over.append(mark);
  const place = () => {
    // A plot that was replaced is told no more.
    if (!plot.root.isConnected) return;
    mark.hidden = clock.us === null;
    if (clock.us === null) return;
    const x = plot.valToPos((clock.us + clock.stepUs / 2) / usPerUnit, "x");
    mark.style.transform = `translateX(${x}px)`;
  };
  clock.onChange(place);
  requestAnimationFrame(place);
  plot.over.addEventListener("click", () => {
    const left = plot.cursor.left ?? -1;
    if (left < 0) return;
    clock.stop();
    const us = plot.posToVal(left, "x") * usPerUnit;
    clock.show(Math.floor(us / clock.stepUs) * clock.stepUs);
  });
}

/** A small chart with its legend; drawn when it has a width. */
export function timeChart(clock: Clock, options: TimeChartOptions): HTMLElement {
  const said = [options.label, ...(options.ideals ?? []).map(({ label }) => label)].join("; ");
  const holder = html("div", { role: "img", "aria-label": said });
  const keys = options.lines.map(({ label, color, dash }) => {
    const line = svg("line", { x1: 0, x2: 22, y1: 6, y2: 6, "stroke-width": 2 });
    line.style.stroke = `var(${color})`;
    if (dash.length > 0) line.setAttribute("stroke-dasharray", dash.join(" "));
    const sample = svg("svg", { width: 22, height: 12, "aria-hidden": "true" }, line);
    return html("span", { class: "key" }, sample, label);
  });
  const figure = html("figure", { class: "time-chart" }, html("figcaption", {}, ...keys), holder);
  let [plot, width]: [uPlot | null, number] = [null, 0];
  const draw = () => {
    width = holder.clientWidth;
    if (width < 50) return;
    plot?.destroy();
    plot = drawPlot(holder, width, options);
    followClock(plot, clock, usPerUnit(options));
  };
  new ResizeObserver(() => {
    if (holder.clientWidth !== width) draw();
  }).observe(holder);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return figure;
}

function usPerUnit({ lines, dtUs }: TimeChartOptions): number {
  const samples = Math.max(0, ...lines.map(({ values }) => values.length));
  return samples * dtUs >= 1000 ? 1000 : 1;
}

function drawPlot(holder: HTMLElement, width: number, options: TimeChartOptions): uPlot {
  const { lines, dtUs, unit } = options;
  const samples = Math.max(0, ...lines.map(({ values }) => values.length));
  const per = usPerUnit(options);
  const time = Array.from({ length: samples }, (_, i) => ((i + 0.5) * dtUs) / per);
  const ideals = options.ideals ?? [];
  const all = [...lines.flatMap(({ values }) => values), ...ideals.map(({ at }) => at(0))];
  const largest = Math.max(0, ...all);
  const top = options.top ?? (largest > 0 ? largest * 1.05 : 1);
  const ticks = { values: (_: uPlot, splits: number[]) => splits.map(tickText) };
  const axis = { ...axisStyle(), ...ticks };
  const plot: uPlot.Options = {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { sync: { key: "time" }, y: false, drag: { x: false, y: false } },
    scales: { x: { time: false, range: [0, (samples * dtUs) / per] }, y: { range: [0, top] } },
    axes: [
      { ...axis, label: `${per > 1 ? "ms" : "µs"} of simulated time`, labelSize: 14, size: 24 },
      { ...axis, label: unit, labelSize: 16, size: 46 },
    ],
    hooks: { draw: [(plot) => drawIdeals(plot, ideals)] },
    series: [
      {},
      ...lines.map(({ label, color, dash }) => ({
        label,
        stroke: cssColor(color),
        width: 1.6,
        dash,
        points: { show: false },
      })),
    ],
  };
  return new uPlot(plot, [time, ...lines.map(({ values }) => values)], holder);
}
