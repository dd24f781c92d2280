// The cables of the samples, with a route between any two hosts.

const pad = (number, size) => String(number).padStart(size, "0");

/**
 * A full tree. down[l]: how many nodes below a switch of level l; up[l]: how many switches above
 * it. With two levels, up[0] spines; with three, pods of up[0] middle switches, and up[0] * up[1]
 * on top. Routes go up by the destination's number (d-mod-k) and down the only way there is.
 */
export function tree({ down, up }) {
  const levels = down.length;
  const pods = levels === 3 ? down[2] : 1;
  const leafCount = pods * down[1];
  const [nodes, links, hosts] = [[], [], []];
  const place = (i, n) => Math.round(((i + 0.5) / n) * 1e5) / 1e5;
  const rows = levels === 2 ? [leafCount, up[0]] : [leafCount, pods * up[0], up[0] * up[1]];
  const names = levels === 2 ? ["leaf", "spine"] : ["leaf", "middle", "top"];
  const switches = rows.map((count, level) =>
    Array.from({ length: count }, (_, i) => {
      const y = Math.round((1 - (level + 1) / (levels + 1)) * 1e3) / 1e3;
      const name = `${names[level]}-${pad(i + 1, count > 99 ? 3 : 2)}`;
      nodes.push({ name, kind: "switch", x: place(i, count), y, level });
      return nodes.length - 1;
    }),
  );
  const cables = new Map();
  const ports = new Map();
  const cable = (a, b) => {
    const port = (node) => {
      ports.set(node, (ports.get(node) ?? 0) + 1);
      return `${nodes[node].name}/P${ports.get(node)}`;
    };
    cables.set(`${a}/${b}`, links.length);
    links.push({ a, b, gbps: 100, name: `${port(a)} – ${port(b)}` });
  };
  const hostCount = leafCount * down[0];
  for (let i = 0; i < hostCount; i += 1) {
    const name = `host-${pad(i + 1, hostCount > 999 ? 4 : 3)}`;
    nodes.push({ name, kind: "host", x: place(i, hostCount), y: 1 });
    hosts.push(nodes.length - 1);
    cable(nodes.length - 1, switches[0][Math.floor(i / down[0])]);
  }
  switches[0].forEach((leaf, l) => {
    const first = levels === 3 ? Math.floor(l / down[1]) * up[0] : 0;
    for (let u = 0; u < up[0]; u += 1) cable(leaf, switches[1][first + u]);
  });
  if (levels === 3) {
    switches[1].forEach((middle, m) => {
      for (let u = 0; u < up[1]; u += 1) cable(middle, switches[2][(m % up[0]) * up[1] + u]);
    });
  }
  const route = (from, to) => {
    const climb = (host, target) => {
      const leaf = Math.floor(host / down[0]);
      const middle = target % up[0];
      const pod = Math.floor(leaf / down[1]);
      if (levels === 2) return [hosts[host], switches[0][leaf], switches[1][middle]];
      const top = switches[2][middle * up[1] + (Math.floor(target / up[0]) % up[1])];
      return [hosts[host], switches[0][leaf], switches[1][pod * up[0] + middle], top];
    };
    const [there, back] = [climb(from, to), climb(to, to)];
    const turn = there.findIndex((node, i) => i > 0 && node === back[i]);
    const path = [...there.slice(0, turn + 1), ...back.slice(0, turn).reverse()];
    return path.slice(1).map((node, i) => {
      const forward = cables.get(`${path[i]}/${node}`);
      return forward === undefined
        ? [cables.get(`${node}/${path[i]}`), "backward"]
        : [forward, "forward"];
    });
  };
  const hot = hosts[Math.floor(hosts.length * 0.52)];
  return { structure: "tree", levels, nodes, links, hosts, hot, route };
}

/** A torus of two dimensions, routed in dimension order. */
export function grid({ dims: [columns, rows], hostsPerSwitch }) {
  const [nodes, links, hosts] = [[], [], []];
  const at = (x, y) => ((y + rows) % rows) * columns + ((x + columns) % columns);
  for (let y = 0; y < rows; y += 1) {
    for (let x = 0; x < columns; x += 1) {
      const place = { x: (x + 0.5) / columns, y: (y + 0.5) / rows };
      nodes.push({ name: `switch-${x}-${y}`, kind: "switch", ...place });
    }
  }
  const cables = new Map();
  const cable = (a, b) => {
    cables.set(`${a}/${b}`, links.length);
    links.push({ a, b, gbps: 100, name: `${nodes[a].name} – ${nodes[b].name}` });
  };
  for (let y = 0; y < rows; y += 1) {
    for (let x = 0; x < columns; x += 1) {
      cable(at(x, y), at(x + 1, y));
      cable(at(x, y), at(x, y + 1));
    }
  }
  for (let i = 0; i < columns * rows * hostsPerSwitch; i += 1) {
    const { x, y } = nodes[Math.floor(i / hostsPerSwitch)];
    nodes.push({ name: `host-${pad(i + 1, 3)}`, kind: "host", x, y });
    hosts.push(nodes.length - 1);
    cable(nodes.length - 1, Math.floor(i / hostsPerSwitch));
  }
  const hop = (from, to) => {
    const forward = cables.get(`${from}/${to}`);
    return forward === undefined ? [cables.get(`${to}/${from}`), "backward"] : [forward, "forward"];
  };
  const route = (from, to) => {
    const goal = Math.floor(to / hostsPerSwitch);
    let here = Math.floor(from / hostsPerSwitch);
    const path = [hosts[from], here];
    while (here !== goal) {
      const [x, y] = [here % columns, Math.floor(here / columns)];
      const [dx, dy] = [
        ahead(x, goal % columns, columns),
        ahead(y, Math.floor(goal / columns), rows),
      ];
      here = dx !== 0 ? at(x + dx, y) : at(x, y + dy);
      path.push(here);
    }
    path.push(hosts[to]);
    return path.slice(1).map((node, i) => hop(path[i], node));
  };
  const hot = hosts[(4 * columns + 5) * hostsPerSwitch];
  return { structure: "grid", dims: [columns, rows], nodes, links, hosts, hot, route };
}

/** A step of -1, 0 or 1 along the shorter way round a ring. */
function ahead(from, to, size) {
  const gap = (to - from + size) % size;
  return gap === 0 ? 0 : gap <= size / 2 ? 1 : -1;
}
