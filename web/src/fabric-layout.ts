/**
 * Where everything on the map goes. Pure: a fabric and a width in, marks out.
 *
 * A switch is a box, a cable between switches a line (two lanes where there is room), a cable to a
 * host a bar hanging from its switch. Above `WHOLE_LINKS_MAX` links cables are gathered: a bar
 * stands for all cables of a switch in one direction of the structure.
 */
import type { Fabric } from "./data";
import { splitLinks } from "./fabric-links";
import type { Layout } from "./fabric-marks";
import { gatheredLayout } from "./layout-gathered";
import { graphLayout } from "./layout-graph";
import { gridLayout } from "./layout-grid";
import { treeLayout } from "./layout-tree";

/** Largest fabric that is drawn cable by cable. */
export const WHOLE_LINKS_MAX = 1500;

/** Lays a fabric out for a width in CSS pixels. */
export function layOut(fabric: Fabric, width: number): Layout {
  const links = splitLinks(fabric);
  if (fabric.links.length > WHOLE_LINKS_MAX) return gatheredLayout(fabric, links, width);
  if (fabric.structure === "tree") return treeLayout(fabric, links, width);
  return fabric.structure === "grid"
    ? gridLayout(fabric, links, width)
    : graphLayout(fabric, links, width);
}
