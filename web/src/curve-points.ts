/** The points of curves on a chart, with their intervals. */
import type uPlot from "uplot";
import type { SweepPoint } from "./data";
import { cssColor } from "./dom";

/** One line: points that differ in nothing but the axis that is drawn along. */
export interface Curve {
  name: string;
  points: { x: number; point: SweepPoint }[];
  color: string;
  dash: number[];
}

/** Whether a figure of a point had settled. */
export function isSettled(point: SweepPoint, figure: number): boolean {
  return point.settled?.[figure] ?? point.converged;
}

/** Points as discs, hollow where a run had not settled, with their intervals as bars. */
export function drawPoints(plot: uPlot, figure: number, lines: Curve[]): void {
  const { ctx } = plot;
  const scale = devicePixelRatio;
  const bottom = plot.bbox.top + plot.bbox.height;
  ctx.save();
  for (const { points, color } of lines) {
    ctx.strokeStyle = ctx.fillStyle = cssColor(color);
    for (const { x, point } of points) {
      const mean = point.mean[figure];
      if (mean === null || mean === undefined) continue;
      const half = point.half_width[figure] ?? 0;
      const [left, y] = [plot.valToPos(x, "x", true), plot.valToPos(mean, "y", true)];
      ctx.lineWidth = 1.4 * scale;
      if (half > 0) {
        const ends = [mean - half, mean + half].map((end) => {
          const place = plot.valToPos(end, "y", true);
          return Number.isFinite(place) ? Math.min(bottom, Math.max(plot.bbox.top, place)) : bottom;
        });
        ctx.beginPath();
        for (const end of ends) {
          ctx.moveTo(left - 3.5 * scale, end);
          ctx.lineTo(left + 3.5 * scale, end);
        }
        ctx.moveTo(left, ends[0] ?? y);
        ctx.lineTo(left, ends[1] ?? y);
        ctx.stroke();
      }
      ctx.beginPath();
      ctx.arc(left, y, 3.4 * scale, 0, 2 * Math.PI);
      if (isSettled(point, figure)) {
        ctx.fill();
      } else {
        ctx.save();
        ctx.fillStyle = cssColor("--bg");
        ctx.fill();
        ctx.restore();
        ctx.stroke();
      }
    }
  }
  ctx.restore();
}
