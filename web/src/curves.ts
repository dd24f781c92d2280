/** Figures over a parameter that was varied: lines with intervals, and the table of all points. */
import uPlot from "uplot";
import type { Sweep, SweepPoint } from "./data";
import { drawPoints, isSettled, type Curve } from "./curve-points";
import { cssColor, html, section, svg, type Child } from "./dom";
import { decimalsFor, fixed } from "./format";
import { UNSTEADY, unsettledMark } from "./headline";
import { drawIdeals, idealsOfFigure, unitOf } from "./ideals";
import { axisStyle, tickText } from "./time-chart";

const COLORS = 6;
const DASHES = [[], [7, 3], [2, 2.5], [10, 3, 2, 3], [1, 5], [14, 4]];
const HEIGHT = 280;
/** Largest over smallest value from which on a scale is logarithmic. */
const LOG_FROM = 50;
/** More lines than that are told apart by nobody: axes are then fixed to their first value. */
const LINES_MAX = 12;
const ALL = -1;
const ROWS_SHOWN = 12;

/** A section of curves; `id` keeps the controls of two of them apart. */
export function curves(id: string, title: string, note: string, sweep: Sweep): HTMLElement {
  const view = new Curves(id, sweep);
  return section(id, title, html("p", { class: "note under-title" }, note), view.element);
}

const isNumeric = (values: (number | string)[]) =>
  values.length > 1 && values.every((value) => typeof value === "number");

/** The axis that figures are drawn along: the first of numbers, else that of most values. */
function firstAxis({ axes }: Sweep): number {
  const numeric = axes.findIndex(({ values }) => isNumeric(values));
  if (numeric >= 0) return numeric;
  const counts = axes.map(({ values }) => values.length);
  const most = Math.max(...counts);
  return most > 1 ? counts.indexOf(most) : -1;
}

class Curves {
  readonly element = html("div", {});
  private readonly charts = html("div", { class: "charts curves" });
  private readonly keys = html("ul", { class: "curve-keys" });
  private readonly table = html("div", { class: "scroll", tabindex: 0, role: "region" });
  private axis: number;
  private readonly figures: number[];
  private plots: uPlot[] = [];
  private width = 0;
  private all = false;
  /** By axis, the value whose points are drawn, or all of them. */
  private readonly shown: number[];

  constructor(
    private readonly id: string,
    private readonly sweep: Sweep,
  ) {
    this.axis = firstAxis(sweep);
    this.figures = firstFigures(sweep);
    this.shown = this.firstShown();
    this.table.setAttribute("aria-label", "Points");
    if (this.axis >= 0) this.element.append(this.controls(), this.keys, this.charts);
    this.element.append(this.table);
    this.drawTable();
    new ResizeObserver(() => {
      if (this.charts.clientWidth !== this.width) this.draw();
    }).observe(this.charts);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  private controls(): HTMLElement {
    const { axes, figures } = this.sweep;
    const selects: Child[] = this.figures.map((figure, chart) =>
      this.select(`figure-${chart}`, chart === 0 ? "Left" : "Right", figures, figure, (value) => {
        this.figures[chart] = value;
        this.draw();
      }),
    );
    const numeric = axes.filter(({ values }) => isNumeric(values));
    if (numeric.length > 1) {
      selects.unshift(
        this.select("axis", "Along", axes, this.axis, (value) => {
          if (!isNumeric(axes[value]?.values ?? [])) return;
          this.axis = value;
          this.draw();
        }),
      );
    }
    axes.forEach(({ label, unit, values }, i) => {
      if (values.length < 2 || axes.length < 2) return;
      const options = ["all", ...values].map((value) => ({
        label: typeof value === "number" ? tickText(value) : value,
        unit: value === "all" ? "" : unit,
      }));
      const initial = (this.shown[i] ?? ALL) + 1;
      const chosen = (value: number) => {
        this.shown[i] = value - 1;
        this.draw();
      };
      selects.push(this.select(`shown-${i}`, label, options, initial, chosen));
    });
    return html("div", { class: "controls" }, ...selects);
  }

  private select(
    name: string,
    legend: string,
    options: { label: string; unit: string; values?: (number | string)[] }[],
    initial: number,
    chosen: (value: number) => void,
  ): HTMLElement {
    const made = options.map(({ label, unit, values }, value) => {
      const text = unit ? `${label}, ${unit}` : label;
      const option = html("option", { value, disabled: !!values && !isNumeric(values) }, text);
      option.selected = value === initial;
      return option;
    });
    const select = html("select", { id: `${this.id}-${name}` }, ...made);
    select.addEventListener("change", () => chosen(Number(select.value)));
    return html("label", { class: "select" }, html("span", {}, legend), select);
  }

  /** Which values are drawn at first: where lines are too many, one of each other axis. */
  private firstShown(): number[] {
    const { axes, points } = this.sweep;
    const shown = axes.map(() => ALL);
    let lines = new Set(points.map(({ variant }) => variant)).size;
    axes.forEach(({ values }, i) => (lines *= i === this.axis ? 1 : values.length));
    for (let i = axes.length - 1; i >= 0 && lines > LINES_MAX; i--) {
      const count = axes[i]?.values.length ?? 1;
      if (i === this.axis || count < 2) continue;
      shown[i] = 0;
      lines /= count;
    }
    return shown;
  }

  /** Lines in the order of their first point: a colour for each variant, dashes for the rest. */
  private lines(): Curve[] {
    const { axes, points } = this.sweep;
    const names = [...new Set(points.map(({ variant }) => variant))];
    const variants = names.length;
    const found = new Map<string, Curve>();
    const rest: string[] = [];
    const isShown = ({ at }: SweepPoint) =>
      this.shown.every((value, i) => i === this.axis || value === ALL || at[i] === value);
    for (const point of points.filter(isShown)) {
      const others = axes.flatMap(({ label, unit, values }, i) => {
        if (i === this.axis || values.length < 2) return [];
        const value = values[point.at[i] ?? 0];
        const text = typeof value === "number" ? tickText(value) : value;
        return `${label} ${text}${unit && ` ${unit}`}`;
      });
      const name = [...(variants > 1 ? [point.variant] : []), ...others].join(", ");
      const place = point.at[this.axis] ?? 0;
      const x = this.named() ? place : axes[this.axis]?.values[place];
      if (typeof x !== "number") continue;
      const other = others.join(", ");
      if (!rest.includes(other)) rest.push(other);
      const [first, second] = [names.indexOf(point.variant), rest.indexOf(other)];
      const [color, dash] = variants > 1 ? [first, second] : [second, 0];
      const curve = found.get(name) ?? {
        name: name || point.variant,
        points: [],
        color: `--curve-${color % COLORS}`,
        dash: DASHES[(dash + Math.floor(color / COLORS)) % DASHES.length] ?? [],
      };
      found.set(name, curve);
      curve.points.push({ x, point });
    }
    for (const curve of found.values()) curve.points.sort((p, q) => p.x - q.x);
    return [...found.values()];
  }

  /** What is written at the values of the axis, if they are no numbers. */
  private named(): string[] | null {
    const values = this.sweep.axes[this.axis]?.values ?? [];
    return isNumeric(values) ? null : values.map(String);
  }

  private draw(): void {
    this.width = this.charts.clientWidth;
    if (this.width < 50 || this.axis < 0) return;
    for (const plot of this.plots) plot.destroy();
    const lines = this.lines();
    this.drawKeys(lines);
    const columns = this.figures.length > 1 && this.width >= 680 ? 2 : 1;
    const width = Math.floor((this.width - (columns - 1) * 24) / columns);
    this.charts.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    const holders = this.figures.map((figure) => {
      const caption = html("figcaption", {}, withUnit(this.sweep.figures[figure]));
      const axes = [this.sweep.figures[figure], this.sweep.axes[this.axis]].map(withUnit);
      const ideals = idealsOfFigure(this.sweep, figure, this.axis).map(({ label }) => label);
      const said = [axes.join(" over "), ...ideals, "see the table"].join("; ");
      const holder = html("div", { role: "img", "aria-label": said });
      return { figure, holder, whole: html("figure", {}, caption, holder) };
    });
    this.charts.replaceChildren(...holders.map(({ whole }) => whole));
    this.plots = holders.map(({ figure, holder }) => this.plot(figure, lines, holder, width));
  }

  private drawKeys(lines: Curve[]): void {
    const keys = lines.map(({ name, color, dash }) => {
      const line = svg("line", { x1: 0, x2: 26, y1: 6, y2: 6, "stroke-width": 2 });
      line.style.stroke = `var(${color})`;
      if (dash.length > 0) line.setAttribute("stroke-dasharray", dash.join(" "));
      const sample = svg("svg", { width: 26, height: 12, "aria-hidden": "true" }, line);
      return html("li", {}, sample, name);
    });
    const figures = this.sweep.figures.map((_, f) => f);
    if (this.sweep.points.some((point) => !figures.every((f) => isSettled(point, f)))) {
      const ring = svg("circle", { class: "unsettled", cx: 7, cy: 6, r: 3.5 });
      const sample = svg("svg", { width: 14, height: 12, "aria-hidden": "true" }, ring);
      keys.push(html("li", {}, sample, "hollow point, and * in the table: not converged"));
    }
    this.keys.replaceChildren(...keys);
  }

  private plot(figure: number, lines: Curve[], holder: HTMLElement, width: number): uPlot {
    const shown = this.sweep.figures[figure];
    const ideals = idealsOfFigure(this.sweep, figure, this.axis);
    const xs = [...new Set(lines.flatMap(({ points }) => points.map(({ x }) => x)))];
    xs.sort((p, q) => p - q);
    const at = (curve: Curve, x: number) => curve.points.find((p) => p.x === x)?.point;
    const columns = lines.map((curve) => xs.map((x) => at(curve, x)?.mean[figure] ?? null));
    const values = columns.flat().filter((value): value is number => value !== null);
    const positive = values.filter((value) => value > 0);
    const isLog =
      positive.length === values.length && Math.max(...values) > LOG_FROM * Math.min(...values);
    const ends = lines.flatMap(({ points }) =>
      points.flatMap(({ point }) => {
        const [mean, half] = [point.mean[figure] ?? null, point.half_width[figure] ?? 0];
        return mean === null ? [] : [mean + (half ?? 0)];
      }),
    );
    // A line that is met on the way up needs no room beyond the figures.
    const level = ideals.filter(({ at }) => at(0) > 0).map(({ at }) => at(0));
    const top = Math.max(0, ...ends, ...level);
    const style = axisStyle();
    const ticks = (_: uPlot, splits: (number | null)[]) =>
      splits.map((value) => (value === null ? "" : tickText(value)));
    const named = this.named();
    const reach = ((xs[xs.length - 1] ?? 1) - (xs[0] ?? 0)) * (named ? 0.1 : 0.04);
    const options: uPlot.Options = {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: false, range: [(xs[0] ?? 0) - reach, (xs[xs.length - 1] ?? 1) + reach] },
        y: isLog ? { distr: 3 } : { range: [0, top > 0 ? top * 1.06 : 1] },
      },
      axes: [
        {
          ...style,
          ...(named ? namedTicks(named, xs, width) : { values: ticks, size: 26 }),
          label: withUnit(this.sweep.axes[this.axis]),
          labelSize: 18,
        },
        { ...style, values: ticks, label: withUnit(shown), labelSize: 18, size: 56 },
      ],
      series: [
        {},
        ...lines.map(({ name, color, dash }) => ({
          label: name,
          stroke: cssColor(color),
          width: 1.8,
          dash,
          spanGaps: true,
          points: { show: false },
          // Names have no order that a line could follow.
          ...(named && { paths: () => null }),
        })),
      ],
      hooks: {
        drawAxes: [(plot) => drawIdeals(plot, ideals)],
        draw: [(plot) => drawPoints(plot, figure, lines)],
      },
    };
    return new uPlot(options, [xs, ...columns], holder);
  }

  private drawTable(): void {
    const { axes, figures, points } = this.sweep;
    const shown = this.all ? points : points.slice(0, ROWS_SHOWN);
    const decimals = figures.map((_, f) => cellDecimals(points.flatMap((p) => p.mean[f] ?? [])));
    const th = (text: string, unit: string, numeric: boolean) =>
      html(
        "th",
        { scope: "col", class: numeric && "number" },
        text,
        html("span", { class: "unit" }, unit || "\u00a0"),
      );
    const several = new Set(points.map(({ variant }) => variant)).size > 1;
    const heads = [
      ...(several ? [th("Variant", "", false)] : []),
      ...axes.map(({ label, unit, values }) => th(label, unit, isNumeric(values))),
      ...figures.map(({ label, unit }) => th(label, unit, true)),
      th("", "", false),
    ];
    const rows = shown.map((point) => {
      const places = axes.map(({ values }, i) => {
        const value = values[point.at[i] ?? 0];
        const isNumber = typeof value === "number";
        const text = isNumber ? tickText(value) : (value ?? "");
        return html("td", { class: isNumber && "number" }, text);
      });
      const cells = figures.map((_, f) => {
        const [mean, half] = [point.mean[f] ?? null, point.half_width[f] ?? null];
        if (point.steady?.[f] === false) {
          return html("td", { class: "number quiet", title: UNSTEADY }, "no steady value");
        }
        if (mean === null) return html("td", { class: "number quiet" }, "–");
        const margin = half !== null && html("span", { class: "quiet" }, ` ± ${figure(half)}`);
        const mark = isSettled(point, f) ? null : unsettledMark();
        return html("td", { class: "number" }, fixed(mean, decimals[f]?.(mean) ?? 0), margin, mark);
      });
      // Marks say it figure by figure where that is known.
      const marked = figures.some((_, f) => !isSettled(point, f)) && point.settled;
      const settled =
        point.converged || marked
          ? null
          : html("span", { class: "unsettled" }, "not converged");
      const run = point.run && html("a", { href: point.run }, "report");
      const name = several && html("th", { scope: "row" }, point.variant);
      const last = html("td", {}, settled, settled && run ? " " : null, run);
      return html("tr", {}, name, ...places, ...cells, last);
    });
    const body = html("tbody", {}, ...rows);
    const head = html("thead", {}, html("tr", {}, ...heads));
    this.table.replaceChildren(html("table", { class: "points" }, head, body));
    if (shown.length < points.length) {
      const text = `Show all ${points.length} points`;
      const more = html("button", { type: "button", class: "more" }, text);
      more.addEventListener("click", () => {
        this.all = true;
        this.drawTable();
      });
      this.table.append(more);
    }
  }
}

/** A quantity with its unit, for an axis. */
/** Names under an axis, aslant where they do not fit beside each other. */
function namedTicks(names: string[], xs: number[], width: number): Partial<uPlot.Axis> {
  const longest = Math.max(...names.map(({ length }) => length));
  const aslant = longest * 7 * names.length > width - 60;
  return {
    splits: () => xs,
    values: (_, splits) => splits.map((x) => names[x] ?? ""),
    rotate: aslant ? -35 : 0,
    size: aslant ? 26 + longest * 4 : 26,
  };
}

function withUnit(shown: { key: string; label: string; unit: string } | undefined): string {
  const unit = shown ? unitOf(shown) : "";
  return [shown?.label ?? "", unit].filter(Boolean).join(", ");
}

/**
 * Digits behind the point of a column's cells: the same for all, but where the largest makes the
 * smallest unreadable, each cell its own.
 */
function cellDecimals(values: number[]): (value: number) => number {
  const sizes = values.map(Math.abs).filter((size) => size > 0);
  const wide = Math.max(...sizes) >= 100 * Math.min(...sizes);
  const common = decimalsFor(values);
  return (value) => (wide && Math.max(...sizes) >= 100 ? decimalsFor([value]) : common);
}

/**
 * What is drawn first, the curves people look for: when programs end, or what is delivered, and its
 * latency.
 */
function firstFigures({ figures }: Sweep): number[] {
  const find = (...ends: string[]) =>
    figures.findIndex(({ key }) => ends.some((end) => key.endsWith(end)));
  const ends = find("completion_time");
  const delivered = find("delivered_load", "victim_accepted_gbps", "accepted_gbps");
  const wanted = [ends >= 0 && find("slowdown") < 0 ? ends : delivered];
  wanted.push(find("latency_mean"));
  const first = wanted.filter((index) => index >= 0);
  const others = figures.map((_, index) => index).filter((index) => !first.includes(index));
  return [...first, ...others].slice(0, 2);
}

/** Half of an interval with two significant digits. */
function figure(half: number): string {
  if (half === 0) return "0";
  return fixed(half, Math.max(0, 1 - Math.floor(Math.log10(half))));
}
