"""What we write, the real subnet manager takes; what it writes, we read back equal."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import readers
from conftest import Clearlane
from peers import Ibsim, OpenSm

BUILT = {
    "fat-tree:648": (648, 54, 1296, "ftree"),
    "torus:4x4x4": (64, 64, 256, "minhop"),
    "star:8": (8, 1, 8, "minhop"),
}
"""Spec: hosts, switches, cables, and the OpenSM engine that takes it."""


def build(clearlane: Clearlane, spec: str) -> Path:
    """A fabric we build, as a netlist."""
    clearlane("fabric", "build", spec, "-o", "fabric.topo")
    return clearlane.folder / "fabric.topo"


@pytest.mark.parametrize("spec", BUILT)
def test_opensm_routes_what_we_build(
    spec: str, clearlane: Clearlane, opensm: Callable[..., OpenSm]
) -> None:
    hosts, switches, cables, engine = BUILT[spec]
    folder = opensm(build(clearlane, spec), engine).folder
    cabling = readers.subnet_lst((folder / "opensm-subnet.lst").read_text())
    assert (len(cabling.hosts), len(cabling.switches)) == (hosts, switches)
    assert len(cabling.cables) == 2 * cables
    tables = readers.lfts((folder / "opensm-lfts.dump").read_text())
    assert len(tables) == switches
    host_lids = {cabling.lids[host] for host in cabling.hosts}
    # ftree gives a spine no entry for another spine: only hosts are counted.
    assert all(host_lids <= row.keys() for row in tables.values())


def test_every_topologys_example_boots_and_routes(
    clearlane: Clearlane, opensm: Callable[..., OpenSm]
) -> None:
    """The command `explain` shows for each builder, run as shown."""
    entries = json.loads(clearlane("list", "topologies", "--json").stdout)["entries"]
    assert len(entries) >= 8
    for entry in entries:
        command = shlex.split(dict(entry["facts"])["example"])
        assert command[:3] == ["clearlane", "fabric", "build"], entry
        clearlane(*command[1:], "--force")
        netlist = clearlane.folder / command[command.index("-o") + 1]
        folder = opensm(netlist, "minhop").folder
        cabling = readers.subnet_lst((folder / "opensm-subnet.lst").read_text())
        assert cabling.hosts == sorted(readers.rank_order(netlist.read_text())), entry["name"]


def test_opensm_routes_a_tree_we_damaged(
    clearlane: Clearlane, opensm: Callable[..., OpenSm]
) -> None:
    build(clearlane, "fat-tree:648")
    clearlane("fabric", "cut", "fabric.topo", "--random", 13, "--seed", 1, "-o", "cut.topo")
    folder = opensm(clearlane.folder / "cut.topo", "minhop").folder
    cabling = readers.subnet_lst((folder / "opensm-subnet.lst").read_text())
    assert len(cabling.hosts) == 648
    assert len(cabling.cables) == 2 * (1296 - 13)


def test_opensms_own_words_read_back_equal(
    clearlane: Clearlane, ibsim: Callable[[Path], Ibsim]
) -> None:
    """Every form a site may have its tables in, against our reading of it."""
    with ibsim(build(clearlane, "fat-tree:648")) as subnet:
        routed = subnet.opensm({"routing_engine": "ftree"})
        discovered = subnet.client(["ibnetdiscover"]).stdout
        dumped = subnet.client(["dump_fts"]).stdout
    assert routed.engine == "ftree"
    (clearlane.folder / "site.ibnetdiscover").write_text(discovered)
    (clearlane.folder / "site.dump_fts").write_text(dumped)
    expected = readers.lfts((routed.folder / "opensm-lfts.dump").read_text())
    fabrics = ["site.ibnetdiscover", routed.folder / "opensm-subnet.lst"]
    dumps = ["site.dump_fts", routed.folder / "opensm-lfts.dump", routed.folder / "opensm.fdbs"]
    for number, (fabric, dump) in enumerate((f, d) for f in fabrics for d in dumps):
        out = f"out-{number}"
        clearlane("route", fabric, "--engine", "file", "--lft", dump, "-o", out)
        written = readers.lfts((clearlane.folder / out / "lfts.txt").read_text())
        assert written == expected, f"{fabric} with {dump}"


@pytest.mark.parametrize(
    ("spec", "engine", "lmc"),
    [
        ("fat-tree:648", "fat-tree", 0),
        ("fat-tree:648", "fat-tree", 2),
        ("fat-tree:648", "min-hop", 0),
        ("torus:4x4x4", "dor", 0),
        ("torus:4x4x4", "min-hop", 1),
        ("torus:4x4x4", "layered", 0),
        ("torus:4x4x4", "up-down", 1),
    ],
)
def test_opensm_loads_our_tables_unchanged(
    spec: str, engine: str, lmc: int, clearlane: Clearlane, opensm: Callable[..., OpenSm]
) -> None:
    netlist = build(clearlane, spec)
    # Tables that can deadlock, as min-hop's on a torus, are written only so.
    clearlane("route", netlist, "--engine", engine, "--lmc", lmc, "-o", "out", "--force")
    out = clearlane.folder / "out"
    loaded = load(netlist, out, opensm, lmc=lmc)
    ours = readers.lfts((out / "lfts.txt").read_text())
    theirs = readers.lfts((loaded.folder / "opensm-lfts.dump").read_text())
    assert theirs == ours
    hosts, switches, _, _ = BUILT[spec]
    assert {len(row) for row in ours.values()} == {(hosts << lmc) + switches}
    assert readers.fdbs((out / "opensm.fdbs").read_text()) == ours
    our_cabling = readers.subnet_lst((out / "opensm-subnet.lst").read_text())
    their_cabling = readers.subnet_lst((loaded.folder / "opensm-subnet.lst").read_text())
    assert our_cabling == their_cabling


def load(
    netlist: Path, out: Path, opensm: Callable[..., OpenSm], *, lmc: int = 0, **conf: object
) -> OpenSm:
    """OpenSM on the netlist with the tables and LIDs `clearlane route` wrote to a folder."""
    loaded = opensm(
        netlist,
        "file",
        guid2lid=(out / "guid2lid").read_text(),
        lfts_file=out / "lfts.txt",
        lmc=lmc,
        **conf,
    )
    assert "ERR" not in loaded.log, loaded.log
    return loaded
