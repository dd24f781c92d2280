// Programs: a bar for each in each variant, and ranks that wait for ever.
import assert from "node:assert/strict";
import { test } from "node:test";
import { small } from "../sample/small.mjs";
import { textOf, textsOf, useBrowser, withPage } from "./page.mjs";

useBrowser();

const completion = (variant, us, interval_us = null) => {
  return { variant, ranks: 4, us, interval_us, ended: us === null ? 0 : 2, seeds: 2 };
};
const program = (name, completions) => {
  return { name, kind: "ring-allreduce", class: "victim", completions };
};

test("a program has a row and a bar in each variant, in a unit that fits all", async () => {
  const data = small();
  const [one, two] = data.variants.map(({ name }) => name);
  data.programs = [
    program("solver", [completion(one, 24000, 500), completion(two, 1000)]),
    program("backup", [completion(one, null), completion(two, 12000)]),
  ];
  await withPage(data, {}, async (page) => {
    assert.equal((await textsOf(page, "h2"))[2], "Completion of programs");
    const heads = await textsOf(page, "#completion thead th");
    assert.deepEqual(heads, ["Program", "Variant", "Ranks", "Completion, ms", ""]);
    const cells = await page.run(`[...document.querySelectorAll("#completion tbody tr")].map(
      (row) => row.querySelector("td:nth-last-child(2)").innerText.trim())`);
    assert.deepEqual(cells, ["24.00 ± 0.50", "1.00", "not ended", "12.00"]);
    const widths = await page.run(`[...document.querySelectorAll("#completion rect")].map(
      (bar) => Math.round(bar.getBoundingClientRect().width))`);
    // The longest has room for its interval.
    assert.deepEqual(widths, [313, 13, 157]);
  });
});

test("a program alone tells nothing of who suffers, and none has no section", async () => {
  const data = small();
  for (const { over_time: over } of data.variants) {
    over.flows.share = over.flows.share.map(() => null);
    over.flows.alone_gbps = over.flows.alone_gbps.map(() => null);
  }
  data.programs = [program("solver", data.variants.map(({ name }) => completion(name, 10)))];
  await withPage(data, {}, async (page) => {
    assert.ok(!(await textsOf(page, "h2")).includes("Who suffers"));
  });
  await withPage(small(), {}, async (page) => {
    assert.ok(!(await textsOf(page, "h2")).includes("Completion of programs"));
  });
});

test("ranks that wait for ever are a table, and best at nothing", async () => {
  const data = small();
  const where = { program: "solver", kind: "ring-allreduce", rank: 0, host: "h1" };
  const wait = { ...where, operation: "receive" };
  data.status = "deadlock";
  data.variants[0].waiting = [
    { ...wait, peer: 1, peer_host: "h2", tag: 7, context: 3 },
    { ...wait, rank: 1, host: "h2", peer: null, peer_host: null, tag: null, context: 3 },
  ];
  data.variants[0].waiting_all = 5;
  await withPage(data, {}, async (page) => {
    const rows = await page.run(`[...document.querySelectorAll(".deadlock tbody tr")].map(
      (row) => [...row.cells].map((cell) => cell.innerText))`);
    assert.deepEqual(rows, [
      ["0", "solver", "h1", "receive", "1", "h2", "7", "3"],
      ["1", "solver", "h2", "receive", "any", "–", "any", "3"],
    ]);
    assert.match(await textOf(page, ".deadlock"), /And 3 more in summary\.json\./);
    assert.equal(await textOf(page, ".headline .unsettled"), "deadlock");
  });
});
