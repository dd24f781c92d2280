/** The elements of a map, and where its details stand. */
import { svg } from "./dom";
import type { Bar, Box, Layout, Line } from "./fabric-marks";

/** A switch and the bytes in it. */
export interface BoxMark {
  box: Box;
  rect: SVGRectElement;
  fill: SVGRectElement;
}

/** A cable without its colour. */
export function lineMark({ x1, y1, x2, y2 }: Line): SVGLineElement {
  return svg("line", { x1, y1, x2, y2 });
}

/** A bar of a share of its length. */
export function barMark(bar: Bar, share: number, name: string): SVGRectElement {
  const size = Math.abs(bar.length) * share;
  const y = bar.length < 0 ? bar.y - size : bar.y;
  const { width } = bar;
  return svg("rect", { class: name, x: bar.x - width / 2, y, width, height: size });
}

/** A switch, what is in it and its name. */
export function boxParts({ box, rect, fill }: BoxMark): SVGElement[] {
  const { x, y, width, height, label } = box;
  if (!label) return [rect, fill];
  return [rect, fill, svg("text", { x: x + width / 2, y: y + height / 2 + 3.6 }, label)];
}

/** Puts details beside what is selected, inside the frame. */
export function placeBeside(
  details: HTMLElement,
  layout: Layout,
  [lines, bars, boxes]: [Line[], Bar[], Box[]],
): void {
  const xs = [
    ...lines.flatMap((line) => [line.x1, line.x2]),
    ...bars.map((bar) => bar.x),
    ...boxes.map((box) => box.x + box.width / 2),
  ];
  const middle = xs.reduce((sum, x) => sum + x, 0) / Math.max(1, xs.length);
  // Where it stood before, the edge of the frame may have made it narrow.
  Object.assign(details.style, { left: "0", top: "0" });
  const width = details.offsetWidth;
  const height = details.offsetHeight;
  const rightHalf = middle > layout.width / 2;
  const x = rightHalf ? Math.min(...xs) - width - 18 : Math.max(...xs) + 18;
  const left = Math.min(Math.max(0, x), Math.max(0, layout.width - width));
  const ys = [
    ...lines.flatMap((line) => [line.y1, line.y2]),
    ...bars.map((bar) => bar.y),
    ...boxes.map((box) => box.y + box.height / 2),
  ];
  const center = ys.reduce((sum, y) => sum + y, 0) / Math.max(1, ys.length);
  const top = Math.min(
    Math.max(0, center - height / 2),
    Math.max(0, layout.height - height),
  );
  details.style.left = `${left}px`;
  details.style.top = `${top}px`;
}
