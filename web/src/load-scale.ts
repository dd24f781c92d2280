/**
 * The scale of the map: classes of a share, each with a colour and a width.
 *
 * Colours are custom properties `--ramp-0` … `--ramp-5` of style.css. Their lightness changes
 * steadily in one direction, so the order survives any colour blindness and a grey print.
 */

/** Which of the two quantities the map shows. */
export type Metric = "load" | "wait";

/** Lower bounds of the classes, 0..1. Waiting starts finer: a few per cent already matter. */
const BOUNDS: Record<Metric, readonly number[]> = {
  load: [0, 0.1, 0.25, 0.5, 0.75, 0.9],
  wait: [0, 0.01, 0.05, 0.15, 0.3, 0.6],
};

const WIDTHS = [1, 1.3, 1.8, 2.5, 3.4, 4.5] as const;

/** Number of classes. */
export const CLASSES = WIDTHS.length;

/** The class of a share, 0..5. */
export function classOf(metric: Metric, share: number): number {
  const bounds = BOUNDS[metric];
  let found = 0;
  while (found + 1 < bounds.length && share >= (bounds[found + 1] ?? Infinity)) found += 1;
  return found;
}

/** Line width of a class in CSS pixels. */
export function widthOf(index: number): number {
  return WIDTHS[index] ?? 1;
}

/** Factor 0.25..1 on line widths that keeps many lines crossing in a map of a width apart. */
export function thinning(lines: number, width: number): number {
  const many = Math.max(1, lines);
  return Math.max(0.25, Math.min(1, 12 / Math.sqrt(many), (0.28 * width) / many));
}

/** What a class covers, such as "25–50". In per cent. */
export function rangeOf(metric: Metric, index: number): string {
  const bounds = BOUNDS[metric];
  const low = (bounds[index] ?? 0) * 100;
  const high = (bounds[index + 1] ?? 1) * 100;
  return `${low}–${high}`;
}
