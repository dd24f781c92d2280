// A report small enough to know every number of it: two leaves, one spine, four hosts, five frames.
//
//   h1 ┐              ┌ h3 (hot receiver)
//      leaf-1 – spine – leaf-2
//   h2 ┘              └ h4
//
// h1 writes to h3 and is the cause; h2 → h4 shares the uplink with it; h4 → h2 goes the other way.
import { deflateSync } from "fflate";

export const FRAMES = 5;

const node = (name, kind, x, y, level) => {
  return { name, kind, x, y, ...(level === undefined ? {} : { level }) };
};
const nodes = [
  node("leaf-1", "switch", 0, 0.6, 0),
  node("leaf-2", "switch", 1, 0.6, 0),
  node("spine-1", "switch", 0.5, 0.2, 1),
  node("h1", "host", 0, 1),
  node("h2", "host", 0.1, 1),
  node("h3", "host", 0.9, 1),
  node("h4", "host", 1, 1),
];
const cables = [
  [3, 0, "h1[1] – leaf-1[1]"],
  [4, 0, "h2[1] – leaf-1[2]"],
  [5, 1, "h3[1] – leaf-2[1]"],
  [6, 1, "h4[1] – leaf-2[2]"],
  [0, 2, "leaf-1[3] – spine-1[1]"],
  [1, 2, "leaf-2[3] – spine-1[2]"],
];
const links = cables.map(([a, b, name]) => ({ a, b, gbps: 40, name }));

/** Channels by what they do: twice the link, one more for b→a. */
export const CHANNEL = { h1: 0, h2: 2, toH3: 5, toH4: 7, up: 8, down: 11, h4: 6, back: 9 };
const { h1, h2, toH3, toH4, up, down, h4 } = CHANNEL;

const pack = (bytes) => Buffer.from(deflateSync(Uint8Array.from(bytes))).toString("base64");
const words = (values) => values.flatMap((value) => [value & 255, value >> 8]);
const whole = (values) =>
  values.flatMap((value) => [0, 8, 16, 24].map((bits) => (value >>> bits) & 255));
const times = (values, share) => values.map((value) => Math.round(value * share * 255));

// By channel: load and waiting per frame. Nothing is held back in frame 0; from frame 1 on the
// tree grows from h3's link backwards: leaf-2's input, then the uplink, then the hosts.
const rows = (slow) => [
  [h1, [0.9, 0.9, 0.6, 0.5, 0.5], [0, 0, 0, 0.4 * slow, 0.5 * slow]],
  [h2, [0.3, 0.3, 0.2, 0.1, 0.1], [0, 0, 0, 0.2 * slow, 0.3 * slow]],
  [toH3, [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]],
  [toH4, [0.3, 0.2, 0.1, 0.1, 0.1], [0, 0, 0, 0, 0]],
  [h4, [0.2, 0.2, 0.2, 0.2, 0.2], [0, 0, 0, 0, 0]],
  [up, [0.9, 0.8, 0.6, 0.5, 0.5], [0, 0, 0.4 * slow, 0.5 * slow, 0.5 * slow]],
  [down, [0.9, 0.8, 0.7, 0.7, 0.7], [0, 0.2 * slow, 0.3 * slow, 0.3 * slow, 0.3 * slow]],
];
const causeOf = { [h1]: up, [h2]: up, [up]: down, [down]: toH3 };

function overTime(slow) {
  const all = rows(slow);
  const gbps = [12, 12, 12, 12, 12].concat([6, 5, 4, 2, 1], [8, 8, 8, 8, 8]);
  return {
    dt_us: 20,
    frames: FRAMES,
    measured: [1, 5],
    channels: pack(whole(all.map(([channel]) => channel))),
    load: pack(all.flatMap(([, load]) => times(load, 1))),
    wait: pack(all.flatMap(([, , wait]) => times(wait, 1))),
    cause: pack(
      whole(
        all.flatMap(([channel, , wait]) => wait.map((w) => (w > 0 ? causeOf[channel] + 3 : 0))),
      ),
    ),
    paths: true,
    switches: [0, 1, 2],
    queue: pack(
      words([
        ...[0, 0, 20000, 40000, 65535],
        ...[0, 9000, 9000, 9000, 9000],
        ...[0, 0, 30000, 60000, 65535],
      ]),
    ),
    queue_bytes_max: 131072 * slow || 1024,
    flows: {
      total: 3,
      recorded: true,
      from: [3, 4, 6],
      to: [5, 6, 4],
      group: [0, 1, 1],
      gbps: [12, 3, 8],
      alone_gbps: [null, 6, 8],
      share: [0.3, 0.5, 1],
      held: [1, 0.75 * slow, 0],
      acks_held: [0, 0, 0.5 * slow],
      root: [toH3, slow ? toH3 : null, null],
      path: [[h1, up, down, toH3], [h2, up, down, toH4], [h4, 10, 9, 3]],
      series: pack(words(gbps.map((value) => Math.round((value / 12) * 65535)))),
      gbps_max: 12,
    },
  };
}

function variant(name, slow) {
  const zeros = links.map(() => 0);
  const mean = (values) => values.slice(1).reduce((sum, value) => sum + value, 0) / 4;
  const shares = { forward: [...zeros], backward: [...zeros] };
  Object.assign(shares, { wait_forward: [...zeros], wait_backward: [...zeros] });
  for (const [channel, load, wait] of rows(slow)) {
    const way = channel & 1 ? "backward" : "forward";
    shares[way][channel >> 1] = mean(load);
    shares[`wait_${way}`][channel >> 1] = mean(wait);
  }
  return {
    name,
    seed: 1,
    links: shares,
    hosts_hot: [5],
    series: {
      dt_us: 20,
      start_us: 0,
      groups: [
        { name: "hot", class: "hot", gbps: [12, 12, 12, 12, 12] },
        { name: "others", class: "victim", gbps: [14, 13, 12, 10, 9] },
      ],
      flows: [],
    },
    worst_links: [
      { link: 5, direction: "backward", load: 0.7, wait: 0.3 * slow, why: "leaf-2 takes no more" },
    ],
    deadlock: null,
    over_time: overTime(slow),
  };
}

/** A comparison: with and without back-pressure. */
export function small() {
  const cells = (value) => ({ gbps: { value, interval: 0.5 } });
  return {
    schema: "clearlane-report/1",
    title: "small",
    summary: "Four hosts.",
    version: "0.0.0-sample",
    command: "clearlane run small.toml",
    seeds: [1, 2],
    status: "not converged",
    suffers_from: 1.25,
    headline: {
      columns: [{ key: "gbps", label: "victim payload", unit: "Gb/s", better: "high" }],
      rows: [
        { variant: "one lane", cells: cells(11), unsettled: [2] },
        { variant: "two lanes", cells: cells(14), unsettled: [] },
      ],
    },
    published: [],
    facts: [],
    oddities: [],
    fabric: { structure: "tree", levels: 2, nodes, links },
    variants: [variant("one lane", 1), variant("two lanes", 0)],
    sweep: null,
    curves: null,
    not_modelled: ["Weather."],
  };
}

/** A sweep over load and lanes; a point is missing, one has not settled. */
export function sweep() {
  const axes = [
    { key: "load", label: "offered load", unit: "", values: [0.2, 0.4, 0.6] },
    { key: "lanes", label: "lanes", unit: "", values: [1, 2] },
  ];
  const figures = [
    { key: "delivered", label: "delivered", unit: "", better: "high" },
    { key: "mean", label: "latency mean", unit: "µs", better: "low" },
  ];
  const points = [0, 1, 2].flatMap((load) =>
    [0, 1].map((lane) => ({
      at: [load, lane],
      variant: "as-is",
      mean: [0.2 * (load + 1) - (lane ? 0 : 0.03 * load), 2 * 10 ** load],
      half_width: [0.01, load === 2 ? null : 0.4],
      converged: load < 2,
      settled: [true, load < 2],
      run: load === 0 ? `points/${lane}/report.html` : null,
    })),
  );
  const { headline, fabric, variants, ...rest } = small();
  return {
    ...rest,
    title: "sweep",
    oddities: ["A remark of the sweep."],
    headline: { columns: [], rows: [] },
    fabric: null,
    variants: [],
    sweep: { axes, figures, points: points.slice(0, 5) },
  };
}
