/** Building elements without a framework. Text is always set as text, never parsed as markup. */

/** Attribute values; false, null and undefined leave the attribute out, true sets it empty. */
export type Attributes = Record<string, string | number | boolean | null | undefined>;

/** What an element may hold. */
export type Child = Node | string | null | undefined | false;

/** An HTML element with attributes and children. */
export function html<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element with attributes and children. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

/** A titled part of the page. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  const heading = html("h2", { id: `${id}-title` }, title);
  return html("section", { id, "aria-labelledby": `${id}-title` }, heading, ...children);
}

/** A row of radio buttons that looks like one control. */
export interface Choice<T extends string> {
  element: HTMLElement;
  /** Shows a value as chosen without calling back. */
  show(value: T): void;
}

/** Makes a choice between values; `chosen` is called when the reader picks one. */
export function choice<T extends string>(
  name: string,
  legend: string,
  options: { value: T; label: string }[],
  initial: T,
  chosen: (value: T) => void,
): Choice<T> {
  const inputs = options.map(({ value }) => {
    const input = html("input", { type: "radio", name, value, id: `${name}-${value}` });
    input.checked = value === initial;
    input.addEventListener("change", () => chosen(value));
    return input;
  });
  const labels = options.map(({ label }, i) =>
    html("label", {}, inputs[i], html("span", {}, label)),
  );
  const buttons = html("div", { class: "choice-options" }, ...labels);
  const element = html("fieldset", { class: "choice" }, html("legend", {}, legend), buttons);
  const show = (value: T) => {
    for (const input of inputs) input.checked = input.value === value;
  };
  return { element, show };
}

/** The current value of a CSS custom property of the page. */
export function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
