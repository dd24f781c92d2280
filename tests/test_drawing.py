"""Drawings are what Graphviz and NetworkX take them for: every node, cable, port and speed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import networkx
import pytest

from conftest import Clearlane
from peers import HANG_S

SPECS = [
    "fat-tree:648",
    "hypercube:5,hosts=2,speed=4xHDR",
    "hyperx:4x3,hosts=2,parallel=1x2",
    "dragonfly:a=4,p=2,h=2",
    "tofu:2x1x2",
    "rail-optimised:units=2,hosts=4,rails=4,spines=2,parallel=2",
]


def shown(clearlane: Clearlane, fabric: object) -> dict[str, int]:
    """The sizes Clearlane itself gives."""
    fields = json.loads(clearlane("fabric", "show", fabric, "--json").stdout)
    return {name: fields[name] for name in ["hosts", "switches", "cables"]}


def graphviz(path: Path) -> dict[str, object]:
    """The graph as `dot` understood it, by its quickest layout."""
    done = subprocess.run(
        ["dot", "-Kosage", "-Tdot_json", str(path)], check=True, capture_output=True, timeout=HANG_S
    )
    assert done.stderr == b"", done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize("spec", SPECS)
def test_both_drawings_have_every_node_and_cable(spec: str, clearlane: Clearlane) -> None:
    sizes = shown(clearlane, spec)
    clearlane("fabric", "build", spec, "-o", "fabric.dot")
    clearlane("fabric", "build", spec, "-o", "fabric.graphml")
    drawn = graphviz(clearlane.folder / "fabric.dot")
    graph = networkx.read_graphml(clearlane.folder / "fabric.graphml", force_multigraph=True)
    kinds = [node["kind"] for node in drawn["objects"]]
    assert (kinds.count("adapter"), kinds.count("switch")) == (sizes["hosts"], sizes["switches"])
    assert len(drawn["edges"]) == sizes["cables"] == graph.number_of_edges()
    assert len(drawn["objects"]) == graph.number_of_nodes()
    assert networkx.is_connected(networkx.Graph(graph))

    def cable(ends: list[tuple[str, str]], width: str, speed: str) -> tuple[object, ...]:
        return (*sorted((guid, int(port)) for guid, port in ends), width, speed)

    guids = {node["_gvid"]: node["guid"] for node in drawn["objects"]}
    dot_cables = [
        cable(
            [(guids[edge["tail"]], edge["taillabel"]), (guids[edge["head"]], edge["headlabel"])],
            edge["link_width"],
            edge["link_speed"],
        )
        for edge in drawn["edges"]
    ]
    nodes = graph.nodes
    graphml_cables = [
        cable(
            [(nodes[a]["guid"], edge["source_port"]), (nodes[b]["guid"], edge["target_port"])],
            edge["width"],
            edge["speed"],
        )
        for a, b, edge in graph.edges(data=True)
    ]
    assert sorted(dot_cables) == sorted(graphml_cables)
    assert len(set(dot_cables)) == sizes["cables"]
    assert {node["label"] for node in drawn["objects"]} == {
        node["name"] for _, node in nodes(data=True)
    }


def test_a_site_is_drawn_with_its_lids_and_layout(site: Path, clearlane: Clearlane) -> None:
    sizes = shown(clearlane, site / "opensm-subnet.lst")
    clearlane("fabric", "convert", site / "opensm-subnet.lst", "-o", "site.dot")
    plain = subprocess.run(
        ["dot", "-Tplain", "site.dot"],
        cwd=clearlane.folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    lines = plain.stdout.splitlines()
    heights: dict[str, float] = {}
    for words in (line.split() for line in lines if line.startswith("node ")):
        heights[words[1]] = float(words[3])
    assert len(heights) == sizes["hosts"] + sizes["switches"]
    assert sum(line.startswith("edge ") for line in lines) == sizes["cables"]
    drawn = graphviz(clearlane.folder / "site.dot")
    by_name = {node["label"]: node for node in drawn["objects"]}
    assert len({node["lid"] for node in by_name.values()}) == len(by_name)
    # Spines above leaves above hosts, as people draw a tree.
    at = {name: heights[node["name"]] for name, node in by_name.items()}
    spines = [y for name, y in at.items() if name.startswith("spine")]
    leaves = [y for name, y in at.items() if name.startswith("leaf")]
    assert spines and leaves and min(spines) > max(leaves) > at["storage01"]


def test_names_with_quotes_ampersands_and_brackets_come_through(clearlane: Clearlane) -> None:
    clearlane("fabric", "build", "star:2", "-o", "star.topo")
    path = clearlane.folder / "star.topo"
    name = "a <b> & 'c' \\n ü"
    path.write_text(path.read_text().replace("host0001", name))
    clearlane("fabric", "convert", "star.topo", "-o", "star.graphml")
    graph = networkx.read_graphml(clearlane.folder / "star.graphml")
    assert name in {node["name"] for _, node in graph.nodes(data=True)}
    clearlane("fabric", "convert", "star.topo", "-o", "star.dot")
    done = subprocess.run(
        ["dot", "-Tsvg", "star.dot"], cwd=clearlane.folder, check=True, capture_output=True
    )
    assert done.stderr == b""
    escaped = "a &lt;b&gt; &amp; &#39;c&#39; \\n ü"
    assert escaped in done.stdout.decode().replace("&#160;", " ")
