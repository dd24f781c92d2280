"""Several paths per pair before the real tools: OpenSM takes all LID offsets as they are, ibdmchk
finds each of them sane, and a walk of our own says how many links the paths of a pair share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

import readers
from conftest import Clearlane
from peers import OpenSm, ibdmchk
from test_opensm import build, load

LMC = 2
OFFSETS = 1 << LMC


def route(clearlane: Clearlane, fabric: object, out: str, *more: object) -> Path:
    """Tables of all LID offsets, or with --lid-offset of one."""
    engine = ["--engine", "multipath", "--lmc", LMC]
    clearlane("route", fabric, *engine, *more, "-o", out)
    return clearlane.folder / out


def judge_each_offset(clearlane: Clearlane, fabric: object, whole: Path, scratch: Path) -> int:
    """ibdmchk on every LID offset as a table of its own, which must hold the same entries as the
    whole. Gives how many paths it walked."""
    cabling = readers.subnet_lst((whole / "opensm-subnet.lst").read_text())
    tables = readers.lfts((whole / "lfts.txt").read_text())
    levels = service_levels(whole)
    paths = 0
    for offset in range(OFFSETS):
        alone = route(clearlane, fabric, f"offset-{offset}", "--lid-offset", offset)
        lids = readers.subnet_lst((alone / "opensm-subnet.lst").read_text()).lids
        assert all(lids[host] == cabling.lids[host] + offset for host in cabling.hosts)
        entries = readers.lfts((alone / "lfts.txt").read_text())
        kept = {lid for row in entries.values() for lid in row}
        assert kept >= set(lids.values())
        expected = {
            guid: {lid: port for lid, port in row.items() if lid in kept}
            for guid, row in tables.items()
        }
        assert entries == expected
        assert service_levels(alone) == {at: sl for at, sl in levels.items() if at[1] in kept}
        assert (alone / "sl2vl.dump").read_text() == (whole / "sl2vl.dump").read_text()
        lanes = {"sl_list": alone / "psl.txt", "sl2vl": alone / "sl2vl.dump"}
        verdict = ibdmchk(alone, scratch, **lanes)
        assert verdict.no_credit_loop and not verdict.errors, verdict.output[-2000:]
        paths += verdict.paths
    return paths


def service_levels(folder: Path) -> dict[tuple[int, int], int]:
    """psl.txt: SL by source node GUID and DLID."""
    lines = (line.split() for line in (folder / "psl.txt").read_text().splitlines())
    return {(int(guid, 16), int(lid)): int(sl) for guid, lid, sl in lines}


def walk(
    cabling: readers.Cabling, tables: readers.Tables, source: int, target: int, offset: int
) -> list[tuple[int, int]]:
    """The switch outputs on the way to one LID of a host, without that to the host itself; fails if
    it does not arrive."""
    at, _ = cabling.leaf(source)
    home, _ = cabling.leaf(target)
    passed: list[tuple[int, int]] = []
    while at != home:
        assert len(passed) <= len(tables), "a loop on the way"
        passed.append((at, tables[at][cabling.lids[target] + offset]))
        at, _ = cabling.cables[passed[-1]]
    return passed


def most_disjoint(of_pair: list[list[tuple[int, int]]]) -> int:
    """How many of the paths share no link, by looking at every choice of them."""
    for size in range(len(of_pair), 1, -1):
        for chosen in combinations(of_pair, size):
            links = [link for path in chosen for link in path]
            if len(links) == len(set(links)):
                return size
    return 1


def counted(folder: Path) -> tuple[float, int]:
    """Mean and least number of link-disjoint paths over all pairs of hosts on two switches."""
    cabling = readers.subnet_lst((folder / "opensm-subnet.lst").read_text())
    tables = readers.lfts((folder / "lfts.txt").read_text())
    counts = []
    for source in cabling.hosts:
        for target in cabling.hosts:
            if cabling.leaf(source)[0] != cabling.leaf(target)[0]:
                of_pair = [walk(cabling, tables, source, target, o) for o in range(OFFSETS)]
                counts.append(most_disjoint(of_pair))
    return sum(counts) / len(counts), min(counts)


def reported(clearlane: Clearlane, fabric: object) -> tuple[float, int]:
    """The same as `clearlane check` says."""
    arguments = ["--engine", "multipath", "--lmc", LMC, "--random-permutations", 0, "--json"]
    found = json.loads(clearlane("check", fabric, *arguments).stdout)["disjointness"]
    assert found["offsets"] == OFFSETS
    classes = found["classes"]
    pairs = sum(of["pairs"] for of in classes)
    mean = sum(of["pairs"] * of["disjoint"] for of in classes) / pairs
    return mean, min(of["disjoint_least"] for of in classes)


def damaged(clearlane: Clearlane, spec: str, dead: int) -> Path:
    """A fabric we build, so many of its cables cut."""
    netlist = build(clearlane, spec)
    if not dead:
        return netlist
    clearlane("fabric", "cut", netlist, "--random", dead, "--seed", 1, "-o", "cut.topo")
    return clearlane.folder / "cut.topo"


@pytest.mark.parametrize(
    ("spec", "dead", "hosts", "lanes"),
    [
        ("torus:4x4", 0, 16, 8),
        ("torus:8x8", 0, 64, 8),
        ("torus:8x8", 5, 64, 8),
        ("mesh:8x4", 0, 32, 4),
        ("xgft:4,4,4;1,4,4", 0, 64, 1),
        ("xgft:4,4,4;1,4,4", 5, 64, 1),
    ],
)
def test_every_offset_is_sane_and_loads(
    spec: str,
    dead: int,
    hosts: int,
    lanes: int,
    clearlane: Clearlane,
    opensm: Callable[..., OpenSm],
    tmp_path: Path,
) -> None:
    netlist = damaged(clearlane, spec, dead)
    out = route(clearlane, netlist, "out")
    loaded = load(netlist, out, opensm, lmc=LMC)
    theirs = readers.lfts((loaded.folder / "opensm-lfts.dump").read_text())
    assert theirs == readers.lfts((out / "lfts.txt").read_text())
    walked = judge_each_offset(clearlane, netlist, out, tmp_path)
    assert walked == OFFSETS * hosts * (hosts - 1)
    mean, least = counted(out)
    said = reported(clearlane, netlist)
    assert said[0] == pytest.approx(mean) and said[1] == least
    used = re.findall(r"^\d+ +\d+ +: (.*)$", (out / "sl2vl.dump").read_text(), re.MULTILINE)
    levels = set(service_levels(out).values())
    on = {int(line.split()[sl]) for line in used for sl in levels}
    assert len(on) <= lanes and len(levels) <= 16
    if "xgft" in spec and not dead:
        assert (mean, least) == (OFFSETS, OFFSETS)
    else:
        assert mean > 1.8


def test_the_offsets_of_a_torus_need_their_lanes(clearlane: Clearlane, tmp_path: Path) -> None:
    """The judge says no to the same tables without lanes, so its yes means something."""
    netlist = build(clearlane, "torus:8x8")
    # Up*/down* needs one lane, dimension order two; eight lanes have room for that at every offset.
    for lanes, expected in [(6, [True, True, False, False]), (8, [True] * OFFSETS)]:
        for offset, looped in enumerate(expected):
            name = f"bare-{lanes}-{offset}"
            of = ["--lanes", lanes, "--lid-offset", offset]
            alone = route(clearlane, netlist, name, *of)
            assert ibdmchk(alone, tmp_path).credit_loop == looped


def test_what_stock_opensm_cannot_install_is_said(clearlane: Clearlane) -> None:
    needed = "needs a routing-engine plug-in"
    netlist = build(clearlane, "torus:4x4")
    said = clearlane("route", netlist, "--engine", "multipath", "--lmc", LMC, "-o", "torus")
    assert [line for line in said.stdout.splitlines() if needed in line]
    readme = " ".join((clearlane.folder / "torus" / "README").read_text().split())
    assert needed in readme and "--lid-offset 0 to 3" in readme
    # All offsets of a tree are on one SL.
    said = clearlane("route", "xgft:3,3;1,3", "--engine", "multipath", "--lmc", 1, "-o", "tree")
    assert needed not in said.stdout


@pytest.mark.parametrize("dead", [0, 6])
def test_needs_shared_loginoff_is_sane_and_loads(
    dead: int,
    shared: Path,
    clearlane: Clearlane,
    opensm: Callable[..., OpenSm],
    tmp_path: Path,
) -> None:
    """A real fabric with hosts on spines, which OpenSM's ftree refuses."""
    source = shared / "data/fabrics/loginoff_qdr_fdr10.ibnetdiscover"
    clearlane("fabric", "convert", source, "-o", "fabric.topo")
    netlist = clearlane.folder / "fabric.topo"
    if dead:
        clearlane("fabric", "cut", netlist, "--random", dead, "--seed", 1, "-o", "cut.topo")
        netlist = clearlane.folder / "cut.topo"
    out = route(clearlane, netlist, "out")
    loaded = load(netlist, out, opensm, lmc=LMC)
    theirs = readers.lfts((loaded.folder / "opensm-lfts.dump").read_text())
    assert theirs == readers.lfts((out / "lfts.txt").read_text())
    # One adapter has both ports cabled.
    assert judge_each_offset(clearlane, netlist, out, tmp_path) == OFFSETS * 145 * 144
