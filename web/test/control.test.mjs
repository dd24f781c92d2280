// Congestion mechanisms over time: a chart per variant that has some, quantity by quantity.
import assert from "node:assert/strict";
import { test } from "node:test";
import { small } from "../sample/small.mjs";
import { press, settle, textsOf, useBrowser, withPage } from "./page.mjs";

useBrowser();

const line = (name, values) => ({ name, class: "hot", values });
const NAMES = ["h1 → h3", "h2 → h4"];
const lines = (rows) => rows.map((values, i) => line(NAMES[i], values));
const QUANTITIES = [
  { name: "BECNs (1/ms)", lines: lines([[0, 10, 20, 30, 40], [0, 0, 0, 5, 5]]) },
  { name: "CCTI", lines: lines([[0, 1, 2, 3, 4], [0, 0, 0, 1, 1]]) },
];

test("only variants with mechanisms have a chart, and every quantity can be shown", async () => {
  const data = small();
  data.variants[1].control = { mechanisms: ["iba-cc", "drb"], quantities: QUANTITIES };
  await withPage(data, {}, async (page) => {
    assert.ok((await textsOf(page, "h2")).includes("Congestion control"));
    const captions = await textsOf(page, "#control figcaption");
    assert.deepEqual(captions, ["two lanes: iba-cc, drb seed 1 of 2"]);
    const means = () => textsOf(page, "#control tbody td:nth-child(3)");
    const told = () =>
      page.run(`document.querySelector("#control [role=img]").getAttribute("aria-label")`);
    assert.deepEqual(await textsOf(page, "#control button.toggle"), NAMES);
    assert.deepEqual(await means(), ["20", "2"]);
    assert.match(await told(), /means, BECNs \(1\/ms\): h1 → h3 20, h2 → h4 2$/);
    await press(page, "#control-kind-1");
    await settle(page);
    assert.deepEqual(await means(), ["2", "0"]);
    assert.match(await told(), /means, CCTI:/);
  });
});

test("without mechanisms there is no such section", async () => {
  await withPage(small(), {}, async (page) => {
    assert.ok(!(await textsOf(page, "h2")).includes("Congestion control"));
  });
});
