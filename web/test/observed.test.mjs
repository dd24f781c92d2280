// The page of captures and of records laid over each other: a table, charts, no fabric.
import assert from "node:assert/strict";
import { test } from "node:test";
import { textOf, textsOf, useBrowser, withPage } from "./page.mjs";

useBrowser();

/** A report as `crates/observe` has it made. */
function observed() {
  const line = (name, of, values) => ({ name, class: of, values });
  const cell = (value) => ({ value, interval: null, converged: true, steady: true });
  const column = (key, label, unit) => ({ key, label, unit, better: null, explained: label });
  const empty = { forward: [], backward: [], wait_forward: [], wait_backward: [] };
  const marked = [line("h1 → h4", "hot", [0, 50]), line("h2 → h5", "victim", [0, 0])];
  return {
    schema: "clearlane-report/1",
    title: "Captures: h4.pcap",
    summary: "1 flow contends",
    verdict: {
      healthy: false,
      lines: [
        { label: "congestion", text: "a flow to h4 passes a congested port" },
        { label: "victims", text: "not told: 1 flow without marks" },
      ],
      facts: [],
    },
    version: "0.0.0",
    command: "clearlane capture h4.pcap",
    seeds: [],
    status: "complete",
    suffers_from: 2,
    headline: {
      columns: [column("rate", "Rate", "Gb/s"), column("marked", "Marked", "%")],
      rows: [
        { variant: "h1 → h4", summary: "contributor", cells: { rate: cell(2), marked: cell(25) } },
        { variant: "h2 → h5", summary: "", cells: { rate: cell(1), marked: cell(null) } },
      ],
    },
    published: [],
    facts: [{ label: "slices", value: "1.00 ms" }],
    oddities: ["h4.pcap ends within a packet"],
    observed: { row: "Flow" },
    variants: [
      {
        name: "captured",
        links: empty,
        hosts_hot: [],
        series: {
          dt_us: 10,
          start_us: 0,
          groups: [],
          flows: [
            { name: "h1 → h4", class: "hot", gbps: [2, 2] },
            { name: "h2 → h5", class: "victim", gbps: [1.5, 0.5] },
          ],
        },
        worst_links: [],
        deadlock: null,
        control: {
          mechanisms: ["marks and notifications"],
          quantities: [{ name: "Marked packets (%)", decimals: 1, lines: marked }],
        },
      },
    ],
    not_modelled: [],
  };
}

test("what was observed is a verdict, a table of flows and charts", async () => {
  await withPage(observed(), {}, async (page) => {
    assert.deepEqual(await textsOf(page, ".verdict dt.bad"), ["congestion"]);
    assert.equal((await textsOf(page, ".headline thead th"))[0], "Flow");
    assert.equal((await textsOf(page, ".headline tbody th")).length, 2);
    const titles = ["Results", "Throughput over time", "Marks and notifications", "Facts"];
    assert.deepEqual(await textsOf(page, "section h2"), [...titles, "Reproduce"]);
    // Nothing of experiments: no map, no seeds, no class, no simulated time.
    assert.deepEqual(await textsOf(page, ".map-stage"), []);
    assert.deepEqual(await textsOf(page, ".status"), []);
    const words = await textOf(page, "main");
    for (const word of ["seed", "simulated", "Class", "Variant"]) {
      assert.ok(!words.includes(word), word);
    }
    assert.ok(words.includes("The same version, files and command give the same bytes."));
    assert.ok(words.includes("h4.pcap ends within a packet"));
  });
});

test("flows of one class are told by colours of their own", async () => {
  const report = observed();
  const names = ["a", "b", "c", "d", "e", "f", "g"];
  const [variant] = report.variants;
  variant.series.flows = names.map((name) => ({ name, class: "hot", gbps: [1, 2] }));
  await withPage(report, {}, async (page) => {
    const looks = await page.run(`
      [...document.querySelectorAll("#throughput table line")].map((line) => {
        const { stroke, strokeDasharray } = getComputedStyle(line);
        return stroke + " " + strokeDasharray;
      })`);
    assert.equal(looks.length, names.length);
    assert.equal(new Set(looks).size, names.length, looks.join("; "));
    const strokes = looks.map((look) => look.split(") ")[0]);
    assert.equal(new Set(strokes).size, 5);
  });
});
