// Fabrics without levels and coordinates: groups of switches, named, none over another.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SAMPLES } from "../sample/make.mjs";
import { textOf, textsOfSvg, useBrowser, withPage } from "./page.mjs";

useBrowser();

/** A dragonfly: groups of switches that are fully meshed, two cables between any two groups. */
function dragonfly(groups, size) {
  const [nodes, links] = [[], []];
  const cable = (a, b) => links.push({ a, b, gbps: 32, name: `c${links.length}` });
  for (let g = 0; g < groups; g += 1) {
    const angle = (2 * Math.PI * g) / groups;
    for (let s = 0; s < size; s += 1) {
      const turn = (2 * Math.PI * s) / size;
      const x = 0.5 + 0.4 * Math.sin(angle) + 0.06 * Math.sin(turn);
      const y = 0.5 - 0.38 * Math.cos(angle) - 0.1 * Math.cos(turn);
      nodes.push({ name: `sw-${g}-${s}`, kind: "switch", x, y, group: g });
      for (let other = 0; other < s; other += 1) cable(g * size + other, g * size + s);
    }
    for (let other = 0; other < g; other += 1) {
      cable(g * size + (other % size), other * size + (g % size));
    }
  }
  const switches = nodes.length;
  for (let node = 0; node < switches; node += 1) {
    for (const nth of [0, 1]) {
      nodes.push({ name: `h${node}-${nth}`, kind: "host", x: nodes[node].x, y: nodes[node].y });
      cable(node, nodes.length - 1);
    }
  }
  const names = Array.from({ length: groups }, (_, g) => `group ${g}`);
  return { structure: "graph", groups: names, nodes, links };
}

for (const [groups, size, gathered] of [
  [9, 4, false],
  [33, 8, true],
]) {
  test(`a dragonfly of ${groups} groups: they are named, no switch covers another`, async () => {
    const data = SAMPLES.torus();
    data.fabric = dragonfly(groups, size);
    const share = Object.keys(data.variants[0].links);
    const links = Object.fromEntries(share.map((key) => [key, data.fabric.links.map(() => 0.2)]));
    const shown = { links, worst_links: [], deadlock: null, over_time: null, hosts_hot: [] };
    data.variants = [{ ...data.variants[0], ...shown }];
    await withPage(data, {}, async (page) => {
      const captions = await textsOfSvg(page, ".captions text");
      const named = captions.filter((text) => text.startsWith("group "));
      assert.deepEqual(named, data.fabric.groups);
      const shape = await textOf(page, "#fabric .note");
      assert.equal(shape, `${groups} groups of switches, neither a tree nor a grid.`);
      const covered = await page.run(`(() => {
        const marks = (selector) => [...document.querySelectorAll(selector)].map(
          (mark) => mark.getBoundingClientRect());
        const boxes = marks(".boxes .box");
        const hit = (p, q) => p.x < q.right && q.x < p.right && p.y < q.bottom && q.y < p.bottom;
        const pairs = boxes.filter((p, i) => boxes.slice(i + 1).some((q) => hit(p, q)));
        const names = marks(".captions text").filter((p) => p.height > 0);
        const texts = names.filter((p, i) => names.slice(i + 1).some((q) => hit(p, q)));
        return [boxes.length, pairs.length, texts.length];
      })()`);
      assert.deepEqual(covered, [groups * size, 0, 0]);
      const labels = await textsOfSvg(page, ".boxes text");
      if (!gathered) assert.deepEqual(labels.slice(0, 5), ["0-0", "0-1", "0-2", "0-3", "1-0"]);
    });
  });
}
