// The verdict: what is wrong, who suffers and what helps, on top of the page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SAMPLES } from "../sample/make.mjs";
import { small } from "../sample/small.mjs";
import { textsOf, useBrowser, withPage } from "./page.mjs";

useBrowser();

for (const scheme of ["light", "dark"]) {
  test(`the first screen has the verdict and the map, ${scheme}`, async () => {
    const text = "some words, as many as fill a whole line of the page, ".repeat(3);
    const labels = ["healthy", "bottleneck", "victims", "helps", "does not", "next"];
    const data = SAMPLES.tree();
    data.verdict = { healthy: true, lines: labels.map((label) => ({ label, text })), facts: [] };
    await withPage(data, { width: 1280, height: 800, scheme }, async (page) => {
      const [verdict, map] = await page.run(`[".verdict", ".map-stage"].map((selector) => {
        const { top, bottom } = document.querySelector(selector).getBoundingClientRect();
        return { top, bottom };
      })`);
      assert.ok(verdict.bottom < map.top, "the map stands below the verdict");
      assert.ok(map.top < 420, `the map begins at ${map.top}`);
      assert.ok(map.bottom <= 800, `and ends at ${map.bottom}`);
    });
  });
}

test("a verdict stands on top in place of the finding", async () => {
  const data = small();
  data.verdict = {
    facts: [
      { fact: "slow-trunks", text: "a cable is slow", more: ["another one"] },
      { fact: "file-noise", text: "one oddity", more: [] },
    ],
    healthy: false,
    lines: [
      { label: "fault", text: "the cable leaf01[7]-spine02[1] runs at 1x QDR" },
      { label: "helps", text: "hot traffic on a lane of its own: they lose nothing" },
      { label: "next", text: "reseat or replace the cable" },
    ],
  };
  await withPage(data, {}, async (page) => {
    assert.deepEqual(await textsOf(page, ".verdict dt"), ["fault", "helps", "next"]);
    assert.equal((await textsOf(page, ".verdict dd"))[1], data.verdict.lines[1].text);
    assert.deepEqual(await textsOf(page, ".verdict dt.bad"), ["fault"]);
    assert.deepEqual(await textsOf(page, ".facts summary"), ["2 facts of cables and tables"]);
    await page.run(`document.querySelector(".facts").open = true`);
    assert.deepEqual(await textsOf(page, ".facts > ul > li > b"), ["slow trunks", "file noise"]);
    assert.deepEqual(await textsOf(page, ".facts li li"), ["another one"]);
    assert.deepEqual(await textsOf(page, "header .summary"), []);
  });
  for (const [text, marked] of [
    ["9 of 48 other flows lose a fifth or more", ["victims"]],
    ["0 of 48 other flows lose a fifth or more", []],
  ]) {
    data.verdict.lines = [{ label: "victims", text }];
    await withPage(data, {}, async (page) => {
      assert.deepEqual(await textsOf(page, ".verdict dt.of-victims"), marked);
    });
  }
  await withPage(small(), {}, async (page) => {
    assert.deepEqual(await textsOf(page, ".verdict"), []);
    assert.deepEqual(await textsOf(page, "header .summary"), ["Four hosts."]);
  });
});
