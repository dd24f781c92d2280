// The filled page in a real browser: what a reader sees, points at and types.
import assert from "node:assert/strict";
import { test } from "node:test";
import { large, SAMPLES } from "../sample/make.mjs";
import { grid } from "../sample/fabrics.mjs";
import { settle, textOf, textsOf, useBrowser, withPage } from "./page.mjs";

const DATA = Object.fromEntries(
  Object.entries({ ...SAMPLES, large }).map(([k, make]) => [k, make()]),
);
const LOAD_BOUNDS = [0, 0.1, 0.25, 0.5, 0.75, 0.9];
useBrowser();

for (const [name, data] of Object.entries(DATA)) {
  for (const [scheme, width] of [
    ["light", 1280],
    ["dark", 700],
  ]) {
    test(`${name}, ${scheme}, ${width} wide: whole, in order, inside the window`, async () => {
      await withPage(data, { width, scheme }, async (page) => {
        const wanted = ["Fabric", "Results", "Throughput over time", "Worst links", "Facts"];
        if (data.published.length > 0) wanted.splice(2, 0, "Published and obtained");
        wanted.push("Not modelled", "Reproduce");
        assert.deepEqual(await textsOf(page, "h2"), wanted);
        assert.equal(await textOf(page, "h1"), data.title);
        assert.equal(await textOf(page, ".summary"), data.summary);
        assert.equal(page.requests.length, 1, `requests: ${page.requests}`);
        assert.equal(await page.run("document.documentElement.scrollWidth"), width);
        const outside = await page.run(`(() => {
          const { width } = document.querySelector(".map-stage").getBoundingClientRect();
          const marks = [...document.querySelectorAll(".lines line, .bars rect, .boxes rect")];
          const left = document.querySelector(".map-stage").getBoundingClientRect().left;
          return marks.filter((mark) => {
            const box = mark.getBoundingClientRect();
            return box.left < left - 1 || box.right > left + width + 1;
          }).length;
        })()`);
        assert.equal(outside, 0, "marks outside the map");
        assert.equal((await textsOf(page, "figcaption")).length, data.variants.length);
      });
    });
  }
}

test("the best cell of a column is marked, ties within the interval too", async () => {
  await withPage(DATA.tree, {}, async (page) => {
    const best = await textsOf(page, ".best");
    assert.deepEqual(best, ["98.9", "58.1", "98.8", "58.5", "96", "0.958"]);
    const first = await page.run(`document.querySelector(".headline tbody tr").innerText`);
    assert.match(first, /21\.3\s*± 0\.6/);
    assert.match(first, /0\.412\s*± 0\.021/);
  });
});

test("every link has the class of its load, for every variant and direction", async () => {
  const { fabric, variants } = DATA.tree;
  const isTrunk = fabric.links.map(({ a, b }) =>
    [a, b].every((node) => fabric.nodes[node].kind === "switch"),
  );
  const expected = (shareOf) => {
    const classes = LOAD_BOUNDS.map(() => 0);
    fabric.links.forEach((_, link) => {
      if (isTrunk[link]) classes[LOAD_BOUNDS.findLastIndex((low) => shareOf(link) >= low)] += 1;
    });
    return classes;
  };
  const drawn = (page) =>
    page.run(`[0, 1, 2, 3, 4, 5].map(
      (i) => document.querySelectorAll(".lines > .ramp-" + i).length)`);
  await withPage(DATA.tree, {}, async (page) => {
    const waiting = `document.querySelector("#map-metric-wait").checked`;
    assert.equal(await page.run(waiting), true, "a hot spot is shown by who waits");
    await page.run(`document.querySelector("#map-metric-load").click()`);
    for (const [v, { links }] of variants.entries()) {
      await page.run(`document.querySelector("#map-variant-${v}").click()`);
      await page.run(`document.querySelector("#map-way-busier").click()`);
      const worse = (link) => Math.max(links.forward[link], links.backward[link]);
      assert.deepEqual(await drawn(page), expected(worse));
      // In this sample a is the lower end of every cable.
      await page.run(`document.querySelector("#map-way-up").click()`);
      assert.deepEqual(
        await drawn(page),
        expected((link) => links.forward[link]),
      );
      await page.run(`document.querySelector("#map-way-down").click()`);
      assert.deepEqual(
        await drawn(page),
        expected((link) => links.backward[link]),
      );
      assert.equal(await page.run(`document.querySelector("#worst-variant-${v}").checked`), true);
    }
    const counts = (await textsOf(page, ".legend li .quiet")).map((text) => parseInt(text, 10));
    assert.equal(
      counts.reduce((sum, n) => sum + n, 0),
      fabric.links.length,
    );
  });
});

test("a torus has two lanes a cable, and stubs where a cable wraps", async () => {
  await withPage(DATA.torus, {}, async (page) => {
    // 128 cables, 16 of them wrap and have a stub at both ends.
    assert.equal(
      await page.run(`document.querySelectorAll(".lines line").length`),
      112 * 2 + 16 * 4,
    );
    assert.equal(await page.run(`document.querySelectorAll(".boxes .stuck").length`), 8);
    assert.equal((await textsOf(page, ".deadlock li")).length, 8);
    await page.run(`document.querySelector("#map-variant-1").click()`);
    assert.equal(await page.run(`document.querySelectorAll(".boxes .stuck").length`), 0);
    assert.equal((await textsOf(page, ".deadlock li")).length, 0);
  });
});

test("keys step through links, worst first, and through switches", async () => {
  await withPage(DATA.tree, {}, async (page) => {
    await page.run(`document.querySelector("#map-metric-load").click()`);
    await page.run(`document.querySelector(".map-stage").focus()`);
    await page.key("ArrowRight");
    assert.match(await textOf(page, ".map-details"), /leaf-13 → host-150\s+100\s%\s+99\.8/);
    assert.match(await textOf(page, ".map-details"), /host-150 → leaf-13/);
    await page.key("ArrowRight");
    assert.match(await textOf(page, ".map-details"), /spine-06 → leaf-13/);
    await page.key("ArrowDown");
    assert.match(await textOf(page, ".map-details"), /^leaf-01\s+24 links, 12 to hosts/);
    await page.key("Escape");
    assert.equal(await page.run(`document.querySelector(".map-details").hidden`), true);
  });
});

test("pointing at a link, a switch or a bundle names it", async () => {
  const center = (selector) => `(() => {
    const mark = document.querySelector("${selector}");
    mark.scrollIntoView({ block: "center" });
    const { x, y, width, height } = mark.getBoundingClientRect();
    return { x: x + width / 2, y: y + height / 2 };
  })()`;
  const pointed = async (page, selector) => {
    const { x, y } = await page.run(center(selector));
    await page.move(x, y);
    await settle(page);
    return textOf(page, ".map-details");
  };
  await withPage(DATA.tree, {}, async (page) => {
    await page.run(`document.querySelector("#map-metric-load").click()`);
    const text = await pointed(page, ".lines line:last-child");
    assert.match(text, /^leaf-13\/P18 – spine-06\/P13/);
    assert.match(await pointed(page, ".boxes rect"), /^leaf-01\n/);
    await page.move(2, 2);
    await settle(page);
    assert.equal(await page.run(`document.querySelector(".map-details").hidden`), true);
  });
  await withPage(DATA.large, {}, async (page) => {
    assert.match(await pointed(page, ".bars .track"), /^top-001: 24 down-links\n/);
    const bars = await page.run(`document.querySelectorAll(".bars .track").length`);
    assert.equal(bars, 288 * 2 + 288 * 2 + 144);
  });
});

test("a worst link leads to its place on the map", async () => {
  await withPage(DATA.tree, {}, async (page) => {
    await page.run(`document.querySelectorAll("#worst button.link")[1].click()`);
    const name = DATA.tree.fabric.links[DATA.tree.variants[0].worst_links[1].link].name;
    assert.ok((await textOf(page, ".map-details")).startsWith(name));
  });
});

test("the legend of the charts hides lines, and reads values at the cursor", async () => {
  await withPage(DATA.tree, {}, async (page) => {
    const picture = () => page.run(`document.querySelector("canvas").toDataURL()`);
    const whole = await picture();
    const toggle = `document.querySelector("button.toggle")`;
    await page.run(`${toggle}.click()`);
    await settle(page);
    assert.equal(await page.run(`${toggle}.getAttribute("aria-pressed")`), "false");
    assert.notEqual(await picture(), whole);
    await page.run(`${toggle}.click()`);
    await settle(page);
    assert.equal(await picture(), whole);
    const { x, y } = await page.run(`(() => {
      const over = document.querySelector(".u-over");
      over.scrollIntoView({ block: "center" });
      const { x, y, width, height } = over.getBoundingClientRect();
      return { x: x + width / 2, y: y + height / 2 };
    })()`);
    await page.move(x - 5, y);
    await page.move(x, y);
    await settle(page);
    const heads = await textsOf(page, ".lines-table thead .unit");
    // The middle of the 160 samples from 0 to 4 ms; cursors of all charts move together.
    assert.ok(
      heads.every((head) => /^at (1\.9[0-9]|2\.0[0-9]) ms$/.test(head)),
      heads.join(),
    );
    const value = Number((await textsOf(page, ".lines-table tbody td:nth-child(3)"))[0]);
    const near = DATA.tree.variants[0].series.groups[0].gbps.slice(76, 84);
    assert.ok(near.includes(value), `${value} is none of ${near}`);
    await page.run(`document.querySelector("#series-kind-flows").click()`);
    assert.equal((await textsOf(page, "button.toggle")).length, 6);
  });
});

test("colours keep their order without hue, and words their contrast", async () => {
  for (const [scheme, sign] of [
    ["light", -1],
    ["dark", 1],
  ]) {
    await withPage(DATA.tree, { scheme }, async (page) => {
      const names = ["bg", "soft", "ink", "muted", "accent", "warn", "victim-0", "hot-0"];
      for (let i = 0; i < 6; i += 1) names.push(`ramp-${i}`);
      const light = await page.run(`(() => {
        const style = getComputedStyle(document.documentElement);
        const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return Object.fromEntries(${JSON.stringify(names)}.map((name) => {
          const [r, g, b] = style.getPropertyValue("--" + name).trim().match(/[0-9a-f]{2}/g)
            .map((part) => linear(parseInt(part, 16) / 255));
          return [name, 0.2126 * r + 0.7152 * g + 0.0722 * b];
        }));
      })()`);
      const contrast = (p, q) =>
        (Math.max(light[p], light[q]) + 0.05) / (Math.min(light[p], light[q]) + 0.05);
      for (const word of ["ink", "muted", "accent", "warn", "victim-0", "hot-0"]) {
        for (const ground of ["bg", "soft"]) assert.ok(contrast(word, ground) >= 4.5, word);
      }
      for (let i = 1; i < 6; i += 1) {
        const step = contrast(`ramp-${i}`, `ramp-${i - 1}`);
        assert.ok(step >= 1.2, `${scheme}: ramp ${i} is only ${step} from ${i - 1}`);
        assert.ok(sign * (light[`ramp-${i}`] - light[`ramp-${i - 1}`]) > 0);
      }
    });
  }
});

test("text in the data stays text", async () => {
  const evil = `</script><img src=x onerror="document.title='owned'"> & <b>`;
  const data = structuredClone(DATA.torus);
  Object.assign(data, { title: evil, summary: evil, oddities: [evil], command: evil });
  data.fabric.nodes[0].name = evil;
  data.variants[0].name = evil;
  await withPage(data, {}, async (page) => {
    assert.equal(await textOf(page, "h1"), evil.replace(/\s+/g, " "));
    assert.equal(await page.run(`document.querySelectorAll("img").length`), 0);
    assert.equal(page.requests.length, 1);
  });
});

test("a large grid is gathered into bars", async () => {
  const { links, ...shape } = grid({ dims: [32, 32], hostsPerSwitch: 1 });
  const data = structuredClone(DATA.torus);
  data.fabric = { structure: "grid", dims: shape.dims, nodes: shape.nodes, links };
  const share = Object.keys(data.variants[0].links).map((key) => [key, links.map(() => 0.4)]);
  const shown = { links: Object.fromEntries(share), worst_links: [], deadlock: null };
  data.variants = [{ ...data.variants[0], ...shown }];
  await withPage(data, {}, async (page) => {
    assert.equal(await page.run(`document.querySelectorAll(".lines line").length`), 0);
    assert.equal(await page.run(`document.querySelectorAll(".bars .track").length`), 2 * 1024);
  });
});

test("without JavaScript the page says where the numbers are", async () => {
  await withPage(DATA.torus, { script: false }, async (page) => {
    assert.match(await textOf(page, "noscript"), /summary\.json/);
    const box = await page.run(
      `document.querySelector("noscript p").getBoundingClientRect().height`,
    );
    assert.ok(box > 0, "the line is not visible");
    assert.equal(await page.run(`document.querySelector("main")`), null);
  });
});

test("data that is no report says why", async () => {
  const failure = async (data, why) => {
    await withPage(data, {}, async (page) => {
      assert.match(await textOf(page, ".failure"), why);
    });
  };
  await failure("__CLEARLANE_DATA__", /empty template/);
  await failure("{", /cannot be shown/);
  await failure({ ...DATA.torus, schema: "clearlane-report/2" }, /'clearlane-report\/2' is not/);
  const broken = structuredClone(DATA.torus);
  broken.fabric.links[3].b = 5000;
  await failure(broken, /fabric\.links\[3\]\.b is 5000, outside 0\.\.191/);
  broken.fabric.links[3].b = 1;
  broken.variants[1].links.wait_forward.pop();
  await failure(broken, /variants\[1\]\.links\.wait_forward has 255 values .* 256 links/);
});

test("facts are said once for the variants they are true of", async () => {
  const data = structuredClone(DATA.torus);
  data.facts = [
    { label: "fabric", value: "64 hosts" },
    { label: "routing", value: "dor", variants: ["a", "b"] },
    { label: "routing", value: "min-hop", variants: ["c"] },
  ];
  await withPage(data, {}, async (page) => {
    assert.deepEqual(await textsOf(page, ".facts dt"), ["fabric", "routing"]);
    assert.deepEqual(await textsOf(page, ".facts dd"), ["64 hosts", "a, b: dor", "c: min-hop"]);
  });
});

test("odd fabrics are drawn too: parallel cables, no samples, a single switch", async () => {
  const data = structuredClone(DATA.torus);
  const node = (name, kind, x, y) => ({ name, kind, x, y });
  const nodes = [
    node("a", "switch", 0.2, 0.5),
    node("b", "switch", 0.8, 0.1),
    node("h", "host", 0, 0),
  ];
  const cables = [
    [0, 1],
    [0, 1],
    [1, 0],
    [0, 2],
  ];
  const links = cables.map(([a, b], i) => ({ a, b, gbps: 25, name: `c${i}` }));
  const zero = links.map(() => 0);
  const share = {
    forward: [0.95, 0, 0.3, 1],
    backward: zero,
    wait_forward: zero,
    wait_backward: zero,
  };
  const series = { dt_us: 10, start_us: 0, groups: [], flows: [] };
  const shown = {
    name: "only",
    links: share,
    hosts_hot: [2],
    series,
    worst_links: [],
    deadlock: null,
  };
  Object.assign(data, { fabric: { structure: "graph", nodes, links }, variants: [shown] });
  await withPage(data, {}, async (page) => {
    assert.equal(await page.run(`document.querySelectorAll(".lines line").length`), 6);
    const places = await page.run(`[...document.querySelectorAll(".lines line")].map((line) =>
      ["x1", "y1", "x2", "y2"].map((name) => Math.round(line.getAttribute(name))).sort().join())`);
    assert.equal(new Set(places).size, 6, "lanes of parallel cables lie on each other");
    assert.equal(await page.run(`document.querySelector("#throughput")`), null);
  });
  const [hub, host] = [{ ...nodes[0], level: 0 }, nodes[2]];
  const only = { a: 1, b: 0, gbps: 25, name: "c" };
  data.fabric = { structure: "tree", levels: 1, nodes: [hub, host], links: [only] };
  const one = { forward: [1], backward: [0], wait_forward: [0], wait_backward: [0] };
  data.variants = [{ ...shown, links: one, hosts_hot: [1] }];
  await withPage(data, {}, async (page) => {
    assert.equal(await page.run(`document.querySelectorAll(".bars .track").length`), 1);
    assert.equal(await textOf(page, ".hot-marks"), "h");
  });
});
