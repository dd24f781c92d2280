/** The congestion trees of an instant in words. */
import type { Trees } from "./congestion-tree";
import { html, type Child } from "./dom";
import { count } from "./format";
import type { Names } from "./names";
import type { Channel } from "./over-time";

/** Roots that are named. */
const NAMED = 2;

/** A sentence with buttons that lead to the roots; empty if trees are not known. */
export function treeLine(
  trees: Trees | null,
  names: Names,
  open: (channel: Channel) => void,
): (string | Node)[] {
  if (!trees) return [];
  const parts: Child[] = [];
  // A full link that nobody waits for is no tree.
  const roots = trees.roots.filter(({ branches }) => branches > 0);
  const named = roots.slice(0, NAMED);
  if (roots.length > 0) parts.push("Congestion tree: ");
  named.forEach((root, i) => {
    const button = html("button", { type: "button", class: "link" }, names.channel(root.channel));
    button.addEventListener("click", () => open(root.channel));
    const held = `holds back ${count(root.branches, "channel")}`;
    const deep = `, ${count(root.depth, "step")} deep`;
    parts.push(i > 0 ? "; " : "", button, ` ${held}${deep}`);
  });
  const others = roots.slice(NAMED);
  if (others.length > 0) {
    const branches = others.reduce((sum, { branches }) => sum + branches, 0);
    const hold = others.length === 1 ? "root holds" : "roots hold";
    parts.push(`; ${others.length} more ${hold} back ${count(branches, "channel")}`);
  }
  if (roots.length > 0) parts.push(". ");
  const { circle } = trees;
  if (circle > 0) parts.push(`${count(circle, "channel")} wait for each other in a circle. `);
  const { unknown } = trees;
  if (unknown > 0) parts.push(`${count(unknown, "channel")} held back, cause unknown.`);
  const said = parts.filter((part): part is string | Node => Boolean(part));
  return said.length > 0 ? said : ["No congestion tree: no channel is held back."];
}
