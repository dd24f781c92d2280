"""Our tables before a judge that shares no line with us: reachability and credit loops."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import readers
from conftest import Clearlane
from peers import OpenSm, ibdmchk
from test_opensm import build, load


def test_the_full_tree_is_sane(
    clearlane: Clearlane, opensm: Callable[..., OpenSm], tmp_path: Path
) -> None:
    netlist = build(clearlane, "fat-tree:648")
    clearlane("route", netlist, "--engine", "fat-tree", "-o", "out")
    out = clearlane.folder / "out"
    for folder in [out, load(netlist, out, opensm).folder]:
        verdict = ibdmchk(folder, tmp_path)
        assert verdict.paths == 648 * 647
        assert verdict.no_credit_loop and not verdict.errors, verdict.output[-2000:]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_damaged_tree_is_sane(seed: int, clearlane: Clearlane, tmp_path: Path) -> None:
    build(clearlane, "fat-tree:648")
    clearlane("fabric", "cut", "fabric.topo", "--random", 13, "--seed", seed, "-o", "cut.topo")
    clearlane("route", "cut.topo", "--engine", "fat-tree", "-o", "out")
    verdict = ibdmchk(clearlane.folder / "out", tmp_path)
    assert verdict.paths == 648 * 647
    assert verdict.no_credit_loop and not verdict.errors, verdict.output[-2000:]


@pytest.mark.parametrize(("spec", "hosts"), [("torus:4x4x4", 64), ("torus:5x3,hosts=2", 30)])
def test_a_torus_is_free_of_credit_loops_by_its_lanes_alone(
    spec: str, hosts: int, clearlane: Clearlane, opensm: Callable[..., OpenSm], tmp_path: Path
) -> None:
    netlist = build(clearlane, spec)
    clearlane("route", netlist, "--engine", "dor", "-o", "out")
    out = clearlane.folder / "out"
    for folder in [out, load(netlist, out, opensm).folder]:
        lanes = {"sl_list": out / "psl.txt", "sl2vl": out / "sl2vl.dump"}
        verdict = ibdmchk(folder, tmp_path, **lanes)
        assert verdict.paths == hosts * (hosts - 1)
        assert verdict.no_credit_loop and not verdict.errors, verdict.output[-2000:]
        # Without them there is a loop: it is the lanes that break it, and the judge looks.
        assert ibdmchk(folder, tmp_path).credit_loop


@pytest.mark.parametrize("dead", [0, 6])
def test_any_torus_is_free_of_credit_loops_in_the_lanes_given(
    dead: int, clearlane: Clearlane, opensm: Callable[..., OpenSm], tmp_path: Path
) -> None:
    netlist = build(clearlane, "torus:4x4x4,hosts=4")
    if dead:
        clearlane("fabric", "cut", netlist, "--random", dead, "--seed", 1, "-o", "cut.topo")
        netlist = clearlane.folder / "cut.topo"
    clearlane("route", netlist, "--engine", "layered", "--lanes", 8, "-o", "out")
    out = clearlane.folder / "out"
    for folder in [out, load(netlist, out, opensm).folder]:
        lanes = {"sl_list": out / "psl.txt", "sl2vl": out / "sl2vl.dump"}
        verdict = ibdmchk(folder, tmp_path, **lanes)
        assert verdict.paths == 256 * 255
        assert verdict.no_credit_loop and not verdict.errors, verdict.output[-2000:]
        # Without them there is a loop: it is the lanes that break it, and the judge looks.
        assert ibdmchk(folder, tmp_path).credit_loop


@pytest.mark.parametrize("engine", ["up-down", "layered"])
def test_one_lane_is_enough_for_any_torus(
    engine: str, clearlane: Clearlane, opensm: Callable[..., OpenSm], tmp_path: Path
) -> None:
    netlist = build(clearlane, "torus:5x5,hosts=2")
    clearlane("route", netlist, "--engine", engine, "--lanes", 1, "-o", "out")
    out = clearlane.folder / "out"
    for folder in [out, load(netlist, out, opensm).folder]:
        verdict = ibdmchk(folder, tmp_path)
        assert verdict.paths == 50 * 49
        assert verdict.no_credit_loop and not verdict.errors, verdict.output[-2000:]


def edited(clearlane: Clearlane, what: str) -> tuple[Path, Path, dict[str, int]]:
    """A tree's tables with entries for one host made wrong: the LFT file, the same for ibdmchk,
    and the places by name."""
    netlist = build(clearlane, "fat-tree:648")
    clearlane("route", netlist, "--engine", "fat-tree", "-o", "out")
    out = clearlane.folder / "out"
    cabling = readers.subnet_lst((out / "opensm-subnet.lst").read_text())
    tables = readers.lfts((out / "lfts.txt").read_text())
    ranks = readers.rank_order(netlist.read_text())
    source, target = ranks[0], ranks[-1]
    lid = cabling.lids[target]
    leaf, _ = cabling.leaf(source)
    spine, back = cabling.cables[leaf, tables[leaf][lid]]
    if what == "loop":
        # The spine sends it back where it came from.
        entries = {(spine, lid): back}
    else:
        # The first leaf hands it to the source's neighbour.
        entries = {(leaf, lid): cabling.leaf(ranks[1])[1]}
    lfts, fdbs = clearlane.folder / f"{what}.lfts", clearlane.folder / f"{what}.fdbs"
    lfts.write_text(readers.edit_lfts((out / "lfts.txt").read_text(), entries))
    fdbs.write_text(readers.edit_fdbs((out / "opensm.fdbs").read_text(), entries))
    places = {"lid": lid, "leaf": leaf, "spine": spine}
    return lfts, fdbs, places


def names(clearlane: Clearlane) -> dict[int, str]:
    """Node names by GUID."""
    out = clearlane.folder / "out"
    return readers.subnet_lst((out / "opensm-subnet.lst").read_text()).names


def test_a_forwarding_loop_is_named(clearlane: Clearlane, tmp_path: Path) -> None:
    lfts, fdbs, places = edited(clearlane, "loop")
    name = names(clearlane)
    # An fdbs file names no GUIDs: it belongs to the LIDs of the opensm-subnet.lst beside it.
    for fabric, tables in [("fabric.topo", lfts), ("out/opensm-subnet.lst", fdbs)]:
        said = clearlane("check", fabric, "--lft", tables, code=1).stdout
        assert re.search(r"\bloop", said)
        assert name[places["leaf"]] in said and name[places["spine"]] in said
    verdict = ibdmchk(clearlane.folder / "out", tmp_path, tables=fdbs)
    assert any("loop in LFT" in line for line in verdict.errors), verdict.output[-2000:]


def test_a_dead_end_is_named(clearlane: Clearlane, tmp_path: Path) -> None:
    lfts, fdbs, places = edited(clearlane, "dead-end")
    name = names(clearlane)
    # An fdbs file names no GUIDs: it belongs to the LIDs of the opensm-subnet.lst beside it.
    for fabric, tables in [("fabric.topo", lfts), ("out/opensm-subnet.lst", fdbs)]:
        said = clearlane("check", fabric, "--lft", tables, code=1).stdout
        assert re.search(r"\bdead end", said)
        assert name[places["leaf"]] in said
    verdict = ibdmchk(clearlane.folder / "out", tmp_path, tables=fdbs)
    assert any("Dead end" in line for line in verdict.errors), verdict.output[-2000:]


def test_a_credit_loop_is_named(clearlane: Clearlane, tmp_path: Path) -> None:
    netlist = build(clearlane, "torus:6")
    # Without --force they are not written.
    clearlane("route", netlist, "--engine", "min-hop", "-o", "out", "--force")
    said = clearlane("check", netlist, "--lft", "out/lfts.txt", code=1).stdout
    assert re.search(r"credit loop", said)
    assert ibdmchk(clearlane.folder / "out", tmp_path).credit_loop
