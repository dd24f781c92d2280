// Makes the sample data of the tests: invented fabrics with invented, plausible numbers. Nothing
// here was simulated. `node sample/make.mjs` writes the JSON files beside this script.
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { grid, tree } from "./fabrics.mjs";

/** A stream of numbers in 0..1 that is the same everywhere (Lehmer's generator). */
export function random(seed) {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}

const round = (value) => Math.round(value * 1000) / 1000;

/** Loads along a list of routes, each a list of [link, direction], scaled to link rate. */
function loads(fabric, routes, next) {
  const sum = { forward: [], backward: [] };
  for (const way of ["forward", "backward"]) sum[way] = fabric.links.map(() => 0);
  for (const { hops, share } of routes) for (const [link, way] of hops) sum[way][link] += share;
  const clip = (load) => round(Math.min(0.998, load * (0.97 + 0.06 * next())));
  return { forward: sum.forward.map(clip), backward: sum.backward.map(clip) };
}

/** Waiting grows where a hot route passes, most beside its senders. */
function waits(fabric, hotRoutes, strength, next) {
  const wait = { forward: fabric.links.map(() => 0), backward: fabric.links.map(() => 0) };
  for (const { hops } of hotRoutes) {
    hops.slice(0, -1).forEach(([link, way], i) => {
      const here = strength * (0.75 - 0.12 * i) * (0.8 + 0.2 * next());
      wait[way][link] = Math.max(wait[way][link], round(here));
    });
  }
  return wait;
}

function wave(next, samples, level, ramp, noise) {
  return Array.from({ length: samples }, (_, i) => {
    const rise = 1 - Math.exp(-i / ramp);
    return Math.round(level * rise * (1 + noise * (next() - 0.5)) * 10) / 10;
  });
}

/** The worst directions, from the numbers themselves. */
function worst(links, why) {
  const rows = ["forward", "backward"].flatMap((direction) =>
    links[direction].map((load, link) => {
      return { link, direction, load, wait: links[`wait_${direction}`][link], why: "" };
    }),
  );
  rows.sort((p, q) => q.load + q.wait - p.load - p.wait || p.link - q.link);
  return rows.slice(0, 10).map((row) => ({ ...row, why: why(row) }));
}

function variant(fabric, name, next, { routes, hot, strength, rates, flows, deadlock = null }) {
  const load = loads(fabric, routes.concat(hot), next);
  const wait = waits(fabric, hot, strength, next);
  const links = { ...load, wait_forward: wait.forward, wait_backward: wait.backward };
  const series = ([label, kind, level, noise]) => {
    return { name: label, class: kind, gbps: wave(next, 160, level, 9, noise) };
  };
  const toHost = (link) => {
    const ends = [fabric.links[link].a, fabric.links[link].b];
    return ends.some((node) => fabric.nodes[node].kind === "host");
  };
  return {
    name,
    links,
    hosts_hot: hot.length > 0 ? [fabric.hot] : [],
    series: { dt_us: 25, start_us: 0, groups: rates.map(series), flows: flows.map(series) },
    worst_links: worst(links, (row) => {
      if (row.wait > 0.3) return "Holds packets for the hot receiver; others queue behind them.";
      return toHost(row.link) ? "Link of a host at its rate." : "Many flows share this cable.";
    }),
    deadlock,
  };
}

function report(fabric, more) {
  const { nodes, links, structure, levels, dims } = fabric;
  const hosts = nodes.filter((node) => node.kind === "host").length;
  return {
    schema: "clearlane-report/1",
    version: "0.0.0-sample",
    command: `clearlane run experiments/sample-${more.file}.toml --out runs/sample-${more.file}`,
    seeds: [1, 2, 3, 4, 5],
    status: "complete",
    suffers_from: 1.25,
    published: [],
    oddities: ["These numbers are invented to test the page; nothing was simulated."],
    facts: [
      {
        label: "Fabric",
        value: `${hosts} hosts, ${nodes.length - hosts} switches, ${links.length} links`,
      },
      { label: "Link rate", value: "100 Gb/s (4x EDR)" },
      { label: "Routing engine", value: more.engine },
      { label: "Reachability", value: `all ${hosts * (hosts - 1)} ordered pairs` },
      {
        label: "Deadlock-free",
        value: more.safe ?? "yes, by a cycle search in the channel dependencies",
      },
      { label: "Simulated time", value: "4 ms, of which 1 ms warm-up" },
      { label: "MTU", value: "4096 bytes" },
      { label: "Parameter set", value: "sample" },
    ],
    not_modelled: [
      "Cable errors and retransmission: a link neither loses nor corrupts a packet.",
      "The processor and memory of the hosts: an adapter always has data when its queue pair has.",
      "Subnet management traffic on VL 15.",
    ],
    ...more.page,
    fabric: { structure, ...(levels && { levels }), ...(dims && { dims }), nodes, links },
  };
}

const COLUMNS = [
  { key: "victim", label: "Victim throughput", unit: "Gb/s per host", better: "high" },
  { key: "hot", label: "Hot receiver", unit: "Gb/s", better: "high" },
  { key: "p99", label: "Message latency, 99 %", unit: "µs", better: "low" },
  { key: "fair", label: "Jain's index", unit: "", better: "high" },
  { key: "wait", label: "Links waiting > 15 %", unit: "directions", better: null },
];

function headline(rows) {
  const cell = ([value, interval]) => ({ value, interval });
  return {
    columns: COLUMNS,
    rows: rows.map(([name, ...cells]) => ({
      variant: name,
      cells: Object.fromEntries(COLUMNS.map(({ key }, i) => [key, cell(cells[i])])),
    })),
  };
}

/** Every host sends to the one `offset` further on, at up to `share` of its link rate. */
function shifts(fabric, offset, share, next = () => 1) {
  const hosts = fabric.hosts.length;
  return fabric.hosts.map((_, i) => {
    return { hops: fabric.route(i, (i + offset) % hosts), share: share * (1 - (1 - next()) ** 3) };
  });
}

function toHot(fabric, every, share) {
  const target = fabric.hosts.indexOf(fabric.hot);
  const senders = fabric.hosts.map((_, i) => i).filter((i) => i % every === 3 && i !== target);
  return senders.map((i) => ({ hops: fabric.route(i, target), share: share / senders.length }));
}

function hotSpotTree() {
  const fabric = tree({ down: [12, 24], up: [12] });
  const next = random(11);
  const flows = (victim) => [
    ["host-004 → host-150", "hot", 4.1, 0.2],
    ["host-016 → host-150", "hot", 3.9, 0.2],
    ["host-005 → host-041", "victim", victim, 0.25],
    ["host-017 → host-077", "victim", victim * 0.93, 0.25],
    ["host-022 → host-113", "victim", victim * 1.06, 0.25],
    ["host-200 → host-236", "background", 62, 0.1],
  ];
  const rates = (victim, hot) => [
    ["hot spot", "hot", hot, 0.04],
    ["victims", "victim", victim, 0.12],
    ["background", "background", 410, 0.06],
  ];
  const base = { routes: shifts(fabric, 36, 0.62, next), hot: toHot(fabric, 12, 1.4) };
  const calm = { routes: shifts(fabric, 36, 0.88, next), hot: toHot(fabric, 12, 0.97) };
  const variants = [
    variant(fabric, "one lane", next, {
      ...base,
      strength: 1,
      rates: rates(221, 99),
      flows: flows(21),
    }),
    variant(fabric, "two lanes", next, {
      ...calm,
      strength: 0.35,
      rates: rates(618, 99),
      flows: flows(58),
    }),
    variant(fabric, "hot flows throttled", next, {
      ...calm,
      strength: 0.08,
      rates: rates(634, 91),
      flows: flows(60),
    }),
  ];
  const rows = [
    ["one lane", [21.34, 0.61], [98.9, 0.1], [1843, 62], [0.412, 0.021], [118, 6]],
    ["two lanes", [58.12, 0.44], [98.8, 0.1], [212.4, 9.1], [0.931, 0.008], [31, 3]],
    ["hot flows throttled", [58.49, 0.52], [91.2, 0.6], [96.3, 4.2], [0.958, 0.006], [2, 1]],
  ];
  const published = [
    {
      name: "Victims, one lane",
      published: "19–23",
      obtained: "21.3",
      unit: "Gb/s",
      note: "Invented row: read off a figure, so only to two digits.",
    },
    {
      name: "Victims, two lanes",
      published: null,
      obtained: "58.1",
      unit: "Gb/s",
      note: "Invented row: the source gives no number.",
    },
  ];
  return report(fabric, {
    file: "tree",
    engine: "ftree (d-mod-k)",
    page: {
      title: "A hot spot on a two-stage tree of 288 hosts",
      summary:
        "24 senders to one host cut the throughput of hosts that never talk to it to 21 of 62 " +
        "Gb/s; a second virtual lane gives 94 % of it back.",
      headline: headline(rows),
      published,
      variants,
    },
  });
}

function torus() {
  const fabric = grid({ dims: [8, 8], hostsPerSwitch: 2 });
  const next = random(23);
  const hot = toHot(fabric, 5, 1.2);
  const rates = (level) => [
    ["tornado", "background", level, 0.1],
    ["hot spot", "hot", 97, 0.05],
  ];
  const flows = [
    ["host-003 → host-072", "hot", 8, 0.2],
    ["host-010 → host-018", "background", 31, 0.2],
  ];
  const cycle = [0, 1, 2, 3, 4, 5, 6, 7].map((x) => ({ switch: `switch-${x}-3`, port: 2, vl: 0 }));
  const variants = [
    variant(fabric, "min-hop", next, {
      routes: shifts(fabric, 7, 0.3),
      hot,
      strength: 1,
      rates: rates(880),
      flows,
      deadlock: cycle,
    }),
    variant(fabric, "torus-2QoS", next, {
      routes: shifts(fabric, 6, 0.25),
      hot,
      strength: 0.6,
      rates: rates(2410),
      flows,
    }),
  ];
  const rows = [
    ["min-hop", [null, null], [null, null], [null, null], [null, null], [96, null]],
    ["torus-2QoS", [37.66, null], [97.2, null], [301.5, null], [0.883, null], [44, null]],
  ];
  return report(fabric, {
    file: "torus",
    engine: "min-hop; torus-2QoS",
    safe: "min-hop: no (a cycle of 8 channels); torus-2QoS: yes",
    page: {
      title: "Min-hop routing deadlocks an 8 × 8 torus",
      summary:
        "Under min-hop tables the torus stops after 1.2 ms in a cycle of eight buffers; " +
        "torus-2QoS carries the same load without one.",
      seeds: [1],
      status: "deadlock",
      suffers_from: 1.25,
      headline: headline(rows),
      variants,
    },
  });
}

function tree648() {
  const fabric = tree({ down: [18, 36], up: [18] });
  const next = random(37);
  const rates = (level) => [["shift 324", "background", level, 0.03]];
  const variants = [
    variant(fabric, "all links", next, {
      routes: shifts(fabric, 324, 0.97),
      hot: [],
      strength: 0,
      rates: rates(62300),
      flows: [],
    }),
    variant(fabric, "shift 7", next, {
      routes: shifts(fabric, 7, 0.97),
      hot: [],
      strength: 0,
      rates: rates(61100),
      flows: [],
    }),
  ];
  const rows = [
    ["all links", [96.2, 0.3], [null, null], [44.1, 0.8], [0.999, 0.001], [0, 0]],
    ["shift 7", [94.3, 2.1], [null, null], [45.0, 0.9], [0.997, 0.002], [0, 0]],
  ];
  return report(fabric, {
    file: "tree-648",
    engine: "ftree (d-mod-k)",
    page: {
      title: "Shifts on a tree of 648 hosts",
      summary: "Every shift runs at 97 % of the link rate: no cable carries more than one flow.",
      headline: headline(rows),
      variants,
    },
  });
}

/** Too large to commit: three levels, gathered into bars by the page. */
export function large() {
  const fabric = tree({ down: [12, 12, 24], up: [12, 12] });
  const next = random(41);
  const rates = [
    ["hot spot", "hot", 99, 0.05],
    ["others", "victim", 90000, 0.1],
  ];
  const one = {
    routes: shifts(fabric, 1000, 0.6, next),
    hot: toHot(fabric, 40, 1.3),
    strength: 0.9,
    rates,
    flows: [],
  };
  return report(fabric, {
    file: "large",
    engine: "ftree (d-mod-k)",
    page: {
      title: "A hot spot on a three-stage tree of 3456 hosts",
      summary: "Back-pressure of one hot receiver reaches every pod.",
      headline: headline([
        ["one lane", [41.2, 0.4], [98.9, 0.1], [2204, 71], [0.6, 0.02], [903, 12]],
      ]),
      variants: [variant(fabric, "one lane", next, one)],
    },
  });
}

/** The committed samples: file name and data. */
export const SAMPLES = { tree: hotSpotTree, torus, "tree-648": tree648 };

/** One line per node, link and array, so that a change can be read in a diff. */
export function text(data) {
  const flat = (value) => JSON.stringify(value);
  const object = (value, indent) => {
    const inside = Object.entries(value).map(
      ([key, item]) => `${indent} ${flat(key)}: ${flat(item)}`,
    );
    return `{\n${inside.join(",\n")}\n${indent}}`;
  };
  const top = Object.entries(data).map(([key, value]) => {
    if (key === "variants") {
      return ` "variants": [${value.map((item) => object(item, " ")).join(",\n ")}]`;
    }
    return key === "fabric" ? ` "fabric": ${object(value, " ")}` : ` ${flat(key)}: ${flat(value)}`;
  });
  return `{\n${top.join(",\n")}\n}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, make] of Object.entries(SAMPLES)) {
    await writeFile(new URL(`${name}.json`, import.meta.url), text(make()));
  }
}
