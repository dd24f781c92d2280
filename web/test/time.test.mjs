// The page in time: the slider, the congestion tree, two variants, what is opened, curves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { small, sweep } from "../sample/small.mjs";
import { press, settle, textOf, textsOf, useBrowser, withPage } from "./page.mjs";

useBrowser();

const DATA = small();
const show = async (page, frame) => {
  await page.run(`(() => {
    const slider = document.querySelector("#time");
    slider.value = ${frame};
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  })()`);
  await settle(page);
};
const lit = (page) =>
  page.run(`[0, 1, 2, 3].map((d) => document.querySelectorAll(".glow .glow-" + d).length)`);
const position = (page) => page.run(`Number(document.querySelector("#time").value)`);

test("the table says which variant had not settled", async () => {
  await withPage(DATA, {}, async (page) => {
    const rows = await textsOf(page, ".headline tbody tr");
    assert.match(rows[0], /one lane\s+not converged: 1 of 2 seeds\s+11/);
    assert.doesNotMatch(rows[1], /converged/);
    assert.match(await textOf(page, ".status"), /Not converged/);
  });
});

test("the tree grows from its root as the slider moves", async () => {
  await withPage(DATA, {}, async (page) => {
    await show(page, 0);
    assert.match(await textOf(page, ".trees"), /No congestion tree/);
    assert.deepEqual(await lit(page), [0, 0, 0, 0]);
    assert.match(await textOf(page, "#time-text"), /^0 µs – 20 µs/);
    // Every light is two marks: the cable of the root, then one more link with every frame.
    await show(page, 1);
    const said = /leaf-2\[1\] → h3\[1\] holds back 1 channel, 1 step deep/;
    assert.match(await textOf(page, ".trees"), said);
    assert.deepEqual(await lit(page), [2, 2, 0, 0]);
    await show(page, 2);
    assert.deepEqual(await lit(page), [2, 2, 2, 0]);
    await show(page, 3);
    assert.match(await textOf(page, ".trees"), /holds back 4 channels, 3 steps deep/);
    assert.deepEqual(await lit(page), [2, 2, 2, 4]);
    await press(page, "#whole");
    // Lit in at least half of the measured frames 1 to 4.
    assert.deepEqual(await lit(page), [2, 2, 2, 4]);
    assert.match(await textOf(page, "#time-text"), /mean/);
  });
});

test("queues fill the switches, and colours follow the instant", async () => {
  await withPage(DATA, {}, async (page) => {
    const filled = () =>
      page.run(`[...document.querySelectorAll(".boxes .queue")].map((fill, i) => {
        const box = document.querySelectorAll(".boxes .box")[i];
        return Math.round(100 * fill.getAttribute("height") / (box.getAttribute("height") - 1));
      })`);
    await show(page, 4);
    // In the order of the nodes: 65535, 9000 and 65535 of 65535.
    assert.deepEqual(await filled(), [100, 14, 100]);
    await show(page, 2);
    assert.deepEqual(await filled(), [31, 14, 46]);
    await press(page, "#map-metric-load");
    const classes = () =>
      page.run(`[...document.querySelectorAll(".lines line")].map((l) => l.getAttribute("class"))`);
    // Load of the two trunks, the busier direction of each: 0.6 and 0.7, then 0.9 and 0.9.
    assert.deepEqual(await classes(), ["ramp-3", "ramp-3"]);
    await show(page, 0);
    assert.deepEqual(await classes(), ["ramp-5", "ramp-5"]);
  });
});

test("it plays: the slider moves, the picture changes, keys stop and step", async () => {
  await withPage(DATA, {}, async (page) => {
    await press(page, "#speed-4");
    const picture = () => page.run(`document.querySelector(".glow").innerHTML`);
    await show(page, 0);
    const first = await picture();
    await press(page, "#play");
    await page.run("new Promise((r) => setTimeout(r, 700))");
    assert.equal(await position(page), 4, "it has come to the end");
    assert.notEqual(await picture(), first);
    assert.match(await textOf(page, "#play"), /Play/, "and stopped there");
    await page.run(`document.querySelector("#time").focus()`);
    await page.key("ArrowLeft");
    await settle(page);
    assert.match(await textOf(page, "#time-text"), /^60 µs – 80 µs/);
    await page.run(`document.querySelector(".map-stage").focus()`);
    await page.key(",");
    assert.equal(await position(page), 2);
    await page.key(".");
    assert.equal(await position(page), 3);
    await page.run(`document.querySelector("#speed-0\\\\.5").click()`);
    await page.key(" ");
    assert.match(await textOf(page, "#play"), /Pause/);
    await page.key(" ");
    assert.match(await textOf(page, "#play"), /Play/);
  });
});

test("a link opens with its load, its waiting and the flows on it", async () => {
  await withPage(DATA, {}, async (page) => {
    await press(page, "#worst button.link");
    await settle(page);
    assert.match(await textOf(page, ".inspector h3"), /^spine-1\[2\] → leaf-2\[3\]$/);
    const said = /73\s% used, 29\.0\sGb\/s of 40\.0.*; 28\s% of the time held back/;
    assert.match(await textOf(page, ".inspector .said"), said);
    const rows = await textsOf(page, ".inspector .flows tbody tr");
    assert.equal(rows.length, 2);
    assert.match(rows[0], /h1 → h3\s+hot\s+12\.0\s+–\s+–\s+30\s%\s+100\s%/);
    assert.match(rows[1], /h2 → h4\s+others\s+3\.00\s+6\.00\s+2\.00×\s+50\s%\s+75\s%/);
    assert.equal(await page.run(`document.querySelectorAll(".inspector canvas").length`), 2);
    // The other direction carries h4 → h2 only.
    await press(page, "[name=direction]:not(:checked)");
    assert.equal((await textsOf(page, ".inspector .flows tbody tr")).length, 1);
    await page.run(`document.querySelector(".inspector .flows button").click()`);
    await settle(page);
    assert.match(await textOf(page, ".inspector h3"), /Flow h4 → h2/);
    assert.equal(await page.run(`document.querySelectorAll(".pins line").length`), 2);
    await press(page, ".inspector .close");
    assert.equal(await page.run(`document.querySelector(".inspector").hidden`), true);
  });
});

test("Enter on the map opens what the keys have reached", async () => {
  await withPage(DATA, {}, async (page) => {
    await page.run(`document.querySelector(".map-stage").focus()`);
    await page.key("ArrowDown");
    await page.key("Enter");
    await settle(page);
    assert.match(await textOf(page, ".inspector .said"), /queued on average, 128\sKiB at most/);
    assert.ok((await textsOf(page, ".inspector tbody tr")).length >= 3);
  });
});

test("two variants stand side by side on one slider, and are pointed at together", async () => {
  await withPage(DATA, { width: 1500 }, async (page) => {
    await press(page, "#map-beside-1");
    await settle(page);
    assert.deepEqual(await textsOf(page, ".map-title"), ["one lane", "two lanes"]);
    await show(page, 3);
    const said = await textsOf(page, ".trees");
    assert.match(said[0], /holds back 4 channels/);
    assert.match(said[1], /No congestion tree/);
    const boxes = await page.run(`[...document.querySelectorAll(".map-stage")].map((stage) => {
      const { top, left, right } = stage.getBoundingClientRect();
      return [Math.round(top), left, right];
    })`);
    assert.equal(boxes[0][0], boxes[1][0], "the maps stand at one height");
    assert.ok(boxes[0][2] <= boxes[1][1], `and do not overlap: ${boxes}`);
    await page.run(`document.querySelector(".map-stage").focus()`);
    await page.key("ArrowRight");
    const details = await textsOf(page, ".map-details");
    assert.equal(details.length, 2);
    assert.equal(details[0].split("\n")[0], details[1].split("\n")[0]);
    assert.notEqual(details[0], details[1], "each says its own variant's numbers");
    await page.key("Enter");
    await settle(page);
    assert.deepEqual(await textsOf(page, ".inspector h4:first-child"), ["one lane", "two lanes"]);
    await press(page, "#map-beside-none");
    assert.equal(await page.run(`document.querySelectorAll(".map-stage").length`), 1);
  });
});

test("who suffers most comes first, with the root that holds it back", async () => {
  await withPage(DATA, {}, async (page) => {
    assert.match(await textOf(page, "#sufferers .note"), /1 of 2 flows that are not hot/);
    // The other flow runs as fast as alone: it is there for who asks for it.
    assert.equal((await textsOf(page, "#sufferers tbody tr")).length, 1);
    await press(page, "#sufferers .more");
    const rows = await textsOf(page, "#sufferers tbody tr");
    assert.match(rows[0], /^h2 → h4.*2\.00×.*75\s%.*→ h3\[1\]$/s);
    assert.match(rows[1], /^h4 → h2.*1\.00×.*0\s%\s+50\s%\s+–$/s);
    await press(page, "#sufferers-senders");
    assert.match((await textsOf(page, "#sufferers tbody tr"))[0], /^h2\s+1\s+3\.00\s+2\.00×/);
    await press(page, "#map-variant-1");
    assert.match(await textOf(page, "#sufferers .note"), /two lanes, seed 1: 1 of 2/);
    const compared = await textsOf(page, ".by-variant li");
    assert.deepEqual(compared, ["one lane 1 of 2 senders", "two lanes 1 of 2 senders"]);
    await press(page, ".by-variant button");
    assert.match(await textOf(page, "#sufferers .note"), /^Variant one lane, seed 1/);
  });
});

test("a victim is red on the map, in tables and in charts, a hot sender is not", async () => {
  for (const scheme of ["light", "dark"]) {
    await withPage(DATA, { scheme }, async (page) => {
      const victims = `document.querySelectorAll(".map-stage .track.victim").length`;
      assert.equal(await page.run(victims), 1, "h2 sends the flow that suffers");
      const colours = await page.run(`(() => {
        const of = (selector, name) => getComputedStyle(document.querySelector(selector))[name];
        const line = (name) => [...document.querySelectorAll(".lines-table tr")]
          .find((row) => row.cells[1].innerText === name).querySelector("line").style.stroke;
        return {
          map: of(".track.victim", "stroke"),
          bar: of(".bars > .victim:not(.track)", "fill"),
          table: of("tr.suffers .fate", "color"),
          count: of("span.suffers", "color"),
          lines: [line("victim"), line("hot")],
        };
      })()`);
      const { map, lines, ...others } = colours;
      const [red, green, blue] = map.match(/\d+/g).map(Number);
      assert.ok(red > 190 && green < 110 && blue < 110, map);
      for (const colour of Object.values(others)) assert.equal(colour, map);
      assert.deepEqual(lines, ["var(--victim-0)", "var(--hot-0)"]);
      assert.match(await textOf(page, ".legend"), /sender slowed or starved/);
    });
  }
});

test("charts say what could be reached", async () => {
  const said = (page, place) =>
    page.run(`document.querySelector("${place} [role=img]").getAttribute("aria-label")`);
  await withPage(DATA, {}, async (page) => {
    assert.match(await said(page, "#throughput"), /; link rate of h3: 40\.0\sGb\/s/);
    await press(page, "#worst button.link");
    await settle(page);
    assert.match(await said(page, ".inspector"), /full: the link's rate, 40\.0\sGb\/s$/);
  });
  const load = sweep();
  const [axis] = load.sweep.axes;
  const [figure] = load.sweep.figures;
  Object.assign(axis, { key: "traffic.load" });
  Object.assign(figure, { key: "delivered_load", unit: "" });
  await withPage(load, {}, async (page) => {
    const words = "share of link rate over offered load, share of link rate";
    const ideal = "ideal: accepted = offered";
    assert.equal(await said(page, "#sweep"), `${figure.label}, ${words}; ${ideal}; see the table`);
  });
  for (const point of load.sweep.points) point.mean[0] *= 0.5;
  await withPage(load, {}, async (page) => {
    assert.doesNotMatch(await said(page, "#sweep"), /ideal/, "it is not all that is offered");
  });
});

test("nobody suffers where all get nearly what they could", async () => {
  const data = small();
  data.variants.splice(1);
  const { flows } = data.variants[0].over_time;
  flows.alone_gbps = [null, 3.3, 8];
  await withPage(data, {}, async (page) => {
    const said = /^Nobody: 2 flows that are not hot get at least 91\s% of what they get alone/;
    assert.match(await textOf(page, "#sufferers .note"), said);
    const hidden = `document.querySelector("#sufferers .scroll").hidden`;
    assert.equal(await page.run(hidden), true);
    await press(page, "#sufferers .more");
    assert.equal(await page.run(hidden), false);
    assert.equal((await textsOf(page, "#sufferers tbody tr")).length, 2);
  });
  flows.alone_gbps = [null, null, null];
  for (const [share, said] of [
    [0.89, /^Nobody: all of 2 flows get at least 89\s% of what they offer/],
    [0.5, /^1 of 2 flows get less than 80\s% of what they offer\.$/],
  ]) {
    flows.share = [0.3, share, 1];
    await withPage(data, {}, async (page) => {
      assert.match(await textOf(page, "#sufferers .note"), said);
    });
  }
});

test("of a run that was stopped in its warm-up nothing is said", async () => {
  const data = small();
  for (const { over_time } of data.variants) {
    over_time.measured = [0, 0];
    over_time.flows.alone_gbps = [null, null, null];
    over_time.flows.share = [null, null, null];
  }
  await withPage(data, {}, async (page) => {
    assert.match(await textOf(page, "#sufferers .note"), /not known: nothing was measured\.$/);
    const each = await textsOf(page, "#sufferers .by-variant li");
    assert.ok(each.length === 2 && each.every((text) => text.endsWith("not measured")), `${each}`);
    assert.doesNotMatch(await textOf(page, "body"), /No congestion tree/);
  });
});

test("what is one seed's says which, and what paths are worth is said", async () => {
  const data = small();
  const note = "Routing is adaptive: packets may have taken others.";
  data.variants[0].over_time.paths_note = note;
  await withPage(data, {}, async (page) => {
    const captions = await textsOf(page, "figcaption");
    assert.deepEqual(captions.slice(0, 2), ["one lane seed 1 of 2", "two lanes seed 1 of 2"]);
    await show(page, 1);
    assert.match(await textOf(page, "#time-text"), /µs, seed 1$/);
    assert.equal(await textOf(page, ".paths"), note);
    await press(page, "#worst button.link");
    assert.ok((await textsOf(page, ".inspector .note")).includes(note));
    await press(page, "#map-variant-1");
    assert.equal(await page.run(`document.querySelector(".paths").hidden`), true);
  });
});

test("a sweep is curves and a table, and says what had not converged", async () => {
  await withPage(sweep(), {}, async (page) => {
    const titles = await textsOf(page, "h2");
    assert.deepEqual(titles, ["Sweep", "Facts", "Not modelled", "Reproduce"]);
    const varied = /^Varied: \S+ \(\d values\), \S+ \(2 values\)\. /;
    assert.match(await textOf(page, "#sweep .note"), varied);
    assert.deepEqual((await textsOf(page, ".curve-keys li")).slice(0, 2), ["lanes 1", "lanes 2"]);
    assert.equal(await page.run(`document.querySelectorAll("#sweep canvas").length`), 2);
    const rows = await textsOf(page, ".points tbody tr");
    assert.equal(rows.length, 5);
    assert.match(rows[0], /^0\.2\s+1\s+0\.200 ± 0\.010\s+2 ± 0\.40\s+report/);
    assert.match(rows[4], /0\.6\s+1\s+0\.540 ± 0\.010\s+200\s*\*$/);
    const painted = () => page.run(`document.querySelector("#sweep canvas").toDataURL()`);
    const before = await painted();
    await page.run(`(() => {
      const select = document.querySelector("#sweep-axis");
      select.value = "1";
      select.dispatchEvent(new Event("change"));
    })()`);
    await settle(page);
    assert.notEqual(await painted(), before);
    assert.deepEqual((await textsOf(page, ".curve-keys li")).slice(0, 3), [
      "offered load 0.2",
      "offered load 0.4",
      "offered load 0.6",
    ]);
    assert.match(await textOf(page, "main"), /A remark of the sweep/);
  });
});

test("a sweep over names has a picture too, of the time programs take first", async () => {
  const named = (mean) => {
    const data = sweep();
    const { axes, figures, points } = data.sweep;
    axes[0].values = ["none", 2, "mod"];
    axes[1].values = ["short", "long"];
    Object.assign(figures[1], { key: "completion_time", label: "completion", unit: "us" });
    points[0].mean[1] = mean;
    return data;
  };
  const painted = async (data) => {
    let pixels = "";
    await withPage(data, {}, async (page) => {
      assert.match((await textsOf(page, "#sweep figcaption"))[0], /^completion/);
      const canvases = `document.querySelectorAll("#sweep canvas").length`;
      assert.equal(await page.run(canvases), 2);
      pixels = await page.run(`document.querySelector("#sweep canvas").toDataURL()`);
    });
    return pixels;
  };
  const first = await painted(named(2));
  const again = await painted(named(2));
  const other = await painted(named(90));
  assert.equal(first, again);
  assert.notEqual(first, other);
});

test("a latency without a steady value is said to have none, and is best at nothing", async () => {
  const report = small();
  const [first, second] = report.headline.rows;
  first.cells.gbps = { ...first.cells.gbps, value: 99, steady: false };
  await withPage(report, {}, async (page) => {
    const rows = await textsOf(page, ".headline tbody tr");
    assert.match(rows[0], /one lane.*no steady value/s);
    assert.doesNotMatch(rows[0], /99/);
    assert.match(rows[1], new RegExp(`${second.variant}.*14`, "s"));
  });
  const points = sweep();
  Object.assign(points.sweep.points[0], { mean: [0.2, null], steady: [true, false] });
  await withPage(points, {}, async (page) => {
    const rows = await textsOf(page, ".points tbody tr");
    assert.match(rows[0], /^0\.2\s+1\s+0\.200 ± 0\.010\s+no steady value/);
  });
});

test("data over time that does not fit is refused with its place", async () => {
  const broken = small();
  broken.variants[1].over_time.frames = 6;
  await withPage(broken, {}, async (page) => {
    const why = await textOf(page, ".failure");
    assert.match(why, /variant two lanes, over_time\.load has 35 values, not 42/);
  });
});
