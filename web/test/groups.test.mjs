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
      assert.equal(shape, `Irregular topology in ${groups} groups of switches.`);
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

/** Switches with long names at places of their own, bundles of cables, a loop, many hosts. */
function irregular() {
  const [nodes, links] = [[], []];
  const cable = (a, b) => links.push({ a, b, gbps: 32, name: `c${links.length}` });
  for (let at = 0; at < 12; at += 1) {
    const name = `MF0;rack${at}-core:MODEL36/U1`;
    nodes.push({ name, kind: "switch", x: (at * 5) % 12 / 11, y: (at * 7) % 12 / 11 });
    for (let other = Math.max(0, at - 2); other < at; other += 1) {
      for (let nth = 0; nth < 1 + (at % 6); nth += 1) cable(at, other);
    }
  }
  cable(3, 3);
  for (let host = 0; host < 60; host += 1) {
    nodes.push({ name: `h${host}`, kind: "host", x: 0, y: 0 });
    cable(nodes.length - 1, host % 5);
  }
  return { structure: "graph", nodes, links };
}

test("an irregular fabric has names, cables from edge to edge, details in its frame", async () => {
  const data = SAMPLES.torus();
  data.fabric = irregular();
  const share = Object.keys(data.variants[0].links);
  const links = Object.fromEntries(share.map((key) => [key, data.fabric.links.map(() => 0.2)]));
  const shown = { links, worst_links: [], deadlock: null, over_time: null, hosts_hot: [] };
  data.variants = [{ ...data.variants[0], ...shown }];
  for (const width of [1280, 700]) {
    await withPage(data, { width }, async (page) => {
      assert.equal(await textOf(page, "#fabric .note"), "Irregular topology.");
      const names = (await textsOfSvg(page, ".boxes text")).filter(Boolean);
      assert.ok(names.includes("rack0-core"), `${names}`);
      if (width > 1000) assert.equal(names.length, 12);
      const astray = await page.run(`(() => {
        const boxes = [...document.querySelectorAll(".boxes .box")].map((box) => box.getBBox());
        const near = (x, y) => boxes.some((box) => {
          const [dx, dy] = [
            Math.max(box.x - x, x - box.x - box.width),
            Math.max(box.y - y, y - box.y - box.height),
          ];
          return Math.abs(Math.max(dx, dy)) < 1.5;
        });
        const lines = [...document.querySelectorAll(".lines line")];
        const at = (line, name) => Number(line.getAttribute(name));
        return lines.flatMap((line) =>
          [[at(line, "x1"), at(line, "y1")], [at(line, "x2"), at(line, "y2")]])
          .filter(([x, y]) => !near(x, y)).length;
      })()`);
      // The tip of the loop's roof, of each of its two sides.
      assert.equal(astray, 2, "ends of cables in mid-air");
      await page.run(`document.querySelector(".map-stage").focus()`);
      for (const key of ["ArrowRight", "ArrowDown"]) {
        for (let step = 0; step < 20; step += 1) {
          await page.key(key);
          const out = await page.run(`(() => {
            const frame = document.querySelector(".map-frame").getBoundingClientRect();
            const details = document.querySelector(".map-details");
            const box = details.getBoundingClientRect();
            return details.scrollWidth > details.clientWidth + 1 || box.left < frame.left - 1 ||
              box.right > frame.right + 1 || box.bottom > frame.bottom + 1;
          })()`);
          assert.equal(out, false, `details leave the frame: ${key}, step ${step}`);
        }
      }
    });
  }
});
