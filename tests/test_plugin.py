"""Our routing engine in a stock OpenSM on simulated subnets: what it programs is what we wrote, and
what it does when the files are stale, spoilt or of another fabric."""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import readers
from conftest import ROOT, Clearlane
from peers import Ibsim, PeerError, RunningOpenSm, ibdmchk, run_bounded
from readers import Cabling

PAIRS = 200
"""How many pairs of LIDs are asked for, each in both directions."""

FILES = ["lfts.txt", "sl2vl.dump", "path-groups.txt"]
"""What the engine reads of what `clearlane route` writes."""


@pytest.fixture(scope="session")
def plugin() -> Path:
    """CLEARLANE_PLUGIN, else what scripts/plugin test has built; a failure if it is not there."""
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "opensm-test"
    path = Path(os.environ.get("CLEARLANE_PLUGIN", built / "libclearlane.so")).resolve()
    if not path.is_file():
        pytest.fail(f"{path} is not there; scripts/plugin test, or set CLEARLANE_PLUGIN")
    return path


def conf(options: str, **more: object) -> dict[str, object]:
    """opensm.conf with our engine and nothing to fall back to."""
    return {
        "routing_engine": "clearlane,no_fallback",
        "event_plugin_name": "clearlane",
        "event_plugin_options": options,
        "qos": "TRUE",
    } | more


@contextmanager
def subnet(netlist: Path, plugin: Path) -> Iterator[Ibsim]:
    """A simulated subnet whose cables can be pulled, and whose OpenSM finds the plug-in."""
    simulated = Ibsim(netlist, netlist.parent / f"ibsim-{random.getrandbits(40):x}", console=True)
    simulated.env["LD_LIBRARY_PATH"] = str(plugin.parent)
    with simulated:
        yield simulated


def said(log: str) -> list[str]:
    """What the engine logged, line by line."""
    return re.findall(r"-> clearlane: (.*)", log)


def routed(clearlane: Clearlane, spec: str, *arguments: object) -> tuple[Path, Path]:
    """A fabric we build, and the folder with its tables."""
    clearlane("fabric", "build", spec, "-o", "fabric.topo")
    netlist = clearlane.folder / "fabric.topo"
    clearlane("route", netlist, *arguments, "-o", "out")
    return netlist, clearlane.folder / "out"


def psl(text: str) -> dict[tuple[int, int], int]:
    """psl.txt: {(node GUID of the source, DLID): SL}."""
    lines = (line.split() for line in text.splitlines())
    return {(int(source, 16), int(dlid)): int(sl) for source, dlid, sl in lines}


def sl2vl(text: str) -> dict[tuple[int, int, int], list[int]]:
    """opensm-sl2vl.dump's switches: {(node GUID, input, output): VL by SL}."""
    rows: dict[tuple[int, int, int], list[int]] = {}
    guid: int | None = None
    for line in text.splitlines():
        if found := re.match(r"(Switch|Channel Adapter|Router) 0x([0-9a-f]+)", line):
            guid = int(found.group(2), 16) if found.group(1) == "Switch" else None
        elif guid is not None and (found := re.match(r"(\d+)\s+(\d+)\s*:(.*)", line)):
            lanes = [int(lane) for lane in found.group(3).split()]
            rows[guid, int(found.group(1)), int(found.group(2))] = lanes
    assert rows, "no switch at all"
    return rows


def cabling_of(folder: Path) -> Cabling:
    return readers.subnet_lst((folder / "opensm-subnet.lst").read_text())


def tables_of(folder: Path) -> readers.Tables:
    return readers.lfts((folder / "opensm-lfts.dump").read_text())


def sampled(hosts: list[int]) -> list[tuple[int, int]]:
    """Pairs of hosts, each in both directions."""
    drawn = random.Random(1)
    pairs = [drawn.sample(hosts, 2) for _ in range(PAIRS)]
    return [pair for a, b in pairs for pair in ((a, b), (b, a))]


def check_levels(
    simulated: Ibsim, cabling: Cabling, ours: dict[tuple[int, int], int], pairs: int
) -> set[int]:
    """Compares what OpenSM answers with psl.txt for some pairs of hosts. Returns the SLs seen."""
    lids = cabling.lids
    drawn = sampled(cabling.hosts)[:pairs]
    asked = simulated.service_levels([(lids[source], lids[target]) for source, target in drawn])
    assert asked == [ours[source, lids[target]] for source, target in drawn]
    return set(asked)


def judge(folder: Path, scratch: Path, levels: str) -> tuple[int, bool]:
    """How many paths ibdmchk walks in what OpenSM has programmed, and whether it finds no credit
    loop on these SLs and on OpenSM's own SL2VL."""
    scratch.mkdir(exist_ok=True)
    (scratch / "psl").write_text(levels)
    sl2vl_dump = folder / "opensm-sl2vl.dump"
    verdict = ibdmchk(folder, scratch, sl_list=scratch / "psl", sl2vl=sl2vl_dump)
    assert not verdict.errors or verdict.credit_loop, verdict.output[-2000:]
    assert verdict.no_credit_loop != verdict.credit_loop, verdict.output[-2000:]
    return verdict.paths, verdict.no_credit_loop


def walk_all(folder: Path) -> int:
    """Every pair of hosts arrives by what OpenSM has programmed; how many there are."""
    cabling, tables = cabling_of(folder), tables_of(folder)
    for source in cabling.hosts:
        for target in cabling.hosts:
            if source != target:
                readers.path(cabling, tables, source, target)
    return len(cabling.hosts) * (len(cabling.hosts) - 1)


def test_a_torus_gets_our_tables_levels_and_lanes(
    clearlane: Clearlane, plugin: Path, tmp_path: Path
) -> None:
    netlist, out = routed(clearlane, "torus:3x4x4", "--engine", "dor", "--lanes", 8)
    levels, lids = (out / "psl.txt").read_text(), (out / "guid2lid").read_text()
    ours = psl(levels)
    with (
        subnet(netlist, plugin) as simulated,
        simulated.running_opensm(conf(f"folder={out}"), guid2lid=lids) as opensm,
    ):
        first = said(opensm.log)[0]
        assert re.match(r"tables of the files taken: .* all 2256 paths arrive, 2 lanes", first)
        assert tables_of(opensm.folder) == readers.lfts((out / "lfts.txt").read_text())
        cabling = cabling_of(opensm.folder)
        assert len(check_levels(simulated, cabling, ours, 2 * PAIRS)) > 2
        rows = sl2vl((out / "sl2vl.dump").read_text())
        assert sl2vl((opensm.folder / "opensm-sl2vl.dump").read_text()) == rows
        for switch in sorted(cabling.switches)[::8]:
            check_lanes(simulated, rows, switch, cabling.lids[switch])
    assert judge(opensm.folder, tmp_path / "judge", levels) == (48 * 47, True)
    # On one lane there is a loop: the lanes break it, and the judge looks.
    flat = re.sub(r" \d+$", " 0", levels, flags=re.MULTILINE)
    assert judge(opensm.folder, tmp_path / "flat", flat) == (48 * 47, False)


def check_lanes(
    simulated: Ibsim, rows: dict[tuple[int, int, int], list[int]], switch: int, lid: int
) -> None:
    """The lanes as the switch itself has them, and one weight for all of them."""
    for output in (1, 4, 7):
        asked = simulated.client(["smpquery", "sl2vl", str(lid), str(output)]).stdout
        found = re.findall(r"in +(\d+), out +(\d+): \|([ 0-9|]+)\|", asked)
        assert len(found) == 8, asked
        for into, out_of, lanes in found:
            wanted = rows[switch, int(into), int(out_of)]
            assert [int(lane) for lane in lanes.split("|")] == wanted
    arbitration = simulated.client(["smpquery", "vlarb", str(lid), "1"]).stdout
    assert arbitration.count("0x40") == 8, arbitration


def test_ports_with_fewer_lanes_get_no_others(clearlane: Clearlane, plugin: Path) -> None:
    """`max_op_vls 2` leaves VL 0 and VL 1; one lane is too few for the datelines of a torus."""
    netlist, out = routed(clearlane, "torus:5x5", "--engine", "dor", "--lanes", 8)
    with subnet(netlist, plugin) as simulated:
        two = simulated.opensm(conf(f"folder={out}", max_op_vls=2), name="two")
        one = simulated.opensm(conf(f"folder={out}", max_op_vls=1), name="one")
        off = simulated.opensm(conf(f"folder={out}", qos="FALSE"), name="off")
    assert "tables of the files taken" in said(two.log)[0]
    lanes = sl2vl((two.folder / "opensm-sl2vl.dump").read_text()).values()
    assert {lane for row in lanes for lane in row} == {0, 1}
    for log in (one.log, off.log):
        assert any("not taken: a credit loop" in line for line in said(log)), said(log)
        assert any("safe engine up-down taken" in line for line in said(log)), said(log)
    assert "qos is FALSE" in said(off.log)[0]


def test_every_offset_of_a_port_has_its_paths_and_levels(
    clearlane: Clearlane, plugin: Path
) -> None:
    """LMC 2: which lane a path takes depends on the LID offset, which only an engine can say."""
    netlist, out = routed(
        clearlane, "torus:4x4", "--engine", "multipath", "--lmc", 2, "--lanes", 8
    )
    ours, lids = psl((out / "psl.txt").read_text()), (out / "guid2lid").read_text()
    with (
        subnet(netlist, plugin) as simulated,
        simulated.running_opensm(conf(f"folder={out}", lmc=2), guid2lid=lids) as opensm,
    ):
        assert said(opensm.log)[0].startswith("tables of the files taken: ")
        assert tables_of(opensm.folder) == readers.lfts((out / "lfts.txt").read_text())
        cabling = cabling_of(opensm.folder)
        paths, levels = [], []
        for source, target in sampled(cabling.hosts)[: PAIRS // 2]:
            slid, dlid = cabling.lids[source], cabling.lids[target]
            paths += [(slid + offset, dlid + offset) for offset in range(4)]
            levels += [ours[source, dlid + offset] for offset in range(4)]
        assert simulated.service_levels(paths) == levels
        assert any(len(set(levels[at : at + 4])) > 1 for at in range(0, len(levels), 4))


def vftree(cabling: Cabling, lanes: int) -> dict[tuple[int, int], int]:
    """The policy as its page describes it: leaves in the order of their first hosts, hosts by GUID,
    pair (i, j) on lane (i + j) mod lanes."""
    hosts, leaves = cabling.hosts, {}
    for host in hosts:
        leaves.setdefault(cabling.leaf(host)[0], len(leaves))
    assert lanes < len(leaves) - 1
    place = {host: leaves[cabling.leaf(host)[0]] for host in hosts}
    return {(a, b): (place[a] + place[b]) % lanes for a in hosts for b in hosts if a != b}


def test_vftree_is_computed_on_what_is_left_of_a_tree(
    clearlane: Clearlane, plugin: Path, tmp_path: Path
) -> None:
    clearlane("fabric", "build", "leaf-spine:leaves=12,hosts=4,spines=4", "-o", "fabric.topo")
    clearlane("fabric", "cut", "fabric.topo", "--random", 9, "--seed", 1, "-o", "cut.topo")
    netlist = clearlane.folder / "cut.topo"
    with subnet(netlist, plugin) as simulated:
        stock = {"routing_engine": "ftree"}
        assert simulated.opensm(stock, name="stock").engine == "minhop", "ftree takes it"
        with simulated.running_opensm(conf("mode=vftree lanes=5")) as opensm:
            assert said(opensm.log)[0].startswith("vftree over up-down taken: 48 hosts")
            cabling, tables = cabling_of(opensm.folder), tables_of(opensm.folder)
            check_vftree(simulated, cabling, vftree(cabling, 5))
            assert walk_all(opensm.folder) == 48 * 47
            levels = vftree(cabling, 5)
            listed = "".join(f"{a:#018x} {cabling.lids[b]} {sl}\n" for (a, b), sl in levels.items())
            assert judge(opensm.folder, tmp_path / "judge", listed) == (48 * 47, True)
            after = after_a_cut(simulated, opensm, cabling, tables)
            assert said(opensm.log)[-2].startswith("vftree over up-down taken: 48 hosts")
            check_vftree(simulated, after, vftree(after, 5), pairs=100)
            assert walk_all(opensm.folder) == 48 * 47


def test_needs_shared_vftree_is_computed_on_a_real_irregular_fabric(
    shared: Path, clearlane: Clearlane, plugin: Path, tmp_path: Path
) -> None:
    """Hosts on spines too, which OpenSM's ftree refuses; and again when a cable is cut."""
    source = shared / "data/fabrics/loginoff_qdr_fdr10.ibnetdiscover"
    clearlane("fabric", "convert", source, "-o", "real.topo")
    netlist = clearlane.folder / "real.topo"
    with (
        subnet(netlist, plugin) as simulated,
        simulated.running_opensm(conf("mode=vftree lanes=4")) as opensm,
    ):
        assert said(opensm.log)[0].startswith("vftree over up-down taken: ")
        cabling, tables = cabling_of(opensm.folder), tables_of(opensm.folder)
        paths = len(cabling.hosts) * (len(cabling.hosts) - 1)
        levels = vftree(cabling, 4)
        check_vftree(simulated, cabling, levels)
        assert walk_all(opensm.folder) == paths
        # One host has two ports, at the same leaf: more ways than pairs of hosts.
        ways = [(a, lid, b) for a in cabling.hosts for lid, b in cabling.host_lids.items()]
        listed = "".join(f"{a:#018x} {lid} {levels.get((a, b), 0)}\n" for a, lid, b in ways)
        walked, sane = judge(opensm.folder, tmp_path / "judge", listed)
        assert walked >= paths and sane
        after = after_a_cut(simulated, opensm, cabling, tables)
        check_vftree(simulated, after, vftree(after, 4), pairs=100)
        assert walk_all(opensm.folder) == paths


def after_a_cut(
    simulated: Ibsim, opensm: RunningOpenSm, cabling: Cabling, tables: readers.Tables
) -> Cabling:
    """Pulls a cable that paths use while OpenSM runs; the cables once it has computed again."""
    switch, port = next(at for at in sorted(cabling.cables) if used(cabling, tables, at))
    simulated.unlink(f"S-{switch:016x}", port)
    opensm.sweep()
    opensm.settled()
    after = cabling_of(opensm.folder)
    assert (switch, port) not in after.cables
    return after


def used(cabling: Cabling, tables: readers.Tables, output: tuple[int, int]) -> bool:
    """Whether a switch sends to another by this port."""
    inner = {output[0], cabling.cables[output][0]} <= cabling.switches
    return inner and output[1] in tables[output[0]].values()


def check_vftree(
    simulated: Ibsim,
    cabling: Cabling,
    levels: dict[tuple[int, int], int],
    pairs: int = 2 * PAIRS,
) -> None:
    drawn = sampled(cabling.hosts)[:pairs]
    asked = simulated.service_levels([(cabling.lids[a], cabling.lids[b]) for a, b in drawn])
    assert asked == [levels[a, b] for a, b in drawn] == [levels[b, a] for a, b in drawn]


def test_a_cut_cable_means_a_safe_engine_until_the_files_are_good_again(
    clearlane: Clearlane, plugin: Path, tmp_path: Path
) -> None:
    netlist, out = routed(clearlane, "torus:3x4x4", "--engine", "dor", "--lanes", 8)
    levels, lids = (out / "psl.txt").read_text(), (out / "guid2lid").read_text()
    ours = psl(levels)
    with (
        subnet(netlist, plugin) as simulated,
        simulated.running_opensm(conf(f"folder={out}"), guid2lid=lids) as opensm,
    ):
        whole = cabling_of(opensm.folder)
        switch = min(whole.switches)
        simulated.unlink(f"S-{switch:016x}", 1)
        opensm.sweep()
        opensm.settled()
        lines = said(opensm.log)
        refusal = r"tables of the files not taken: \d+ of 2256 paths"
        assert any(re.match(refusal, line) for line in lines)
        assert any(line.startswith("safe engine up-down taken: ") for line in lines)
        cabling = cabling_of(opensm.folder)
        assert len(cabling.cables) == len(whole.cables) - 2
        assert walk_all(opensm.folder) == 48 * 47
        assert judge(opensm.folder, tmp_path / "cut", levels) == (48 * 47, True)
        # Connections that are there have these SLs already, and they stay good.
        check_levels(simulated, cabling, ours, 100)
        # New files for what is left.
        left = opensm.folder / "opensm-subnet.lst"
        clearlane("route", left, "--engine", "layered", "--lanes", 8, "-o", "new")
        for name in FILES:
            (out / f"{name}.new").write_bytes((clearlane.folder / "new" / name).read_bytes())
            (out / f"{name}.new").replace(out / name)
        assert said(opensm.sweep())[0].startswith("tables of the files taken: ")
        opensm.settled()
        assert tables_of(opensm.folder) == readers.lfts((out / "lfts.txt").read_text())
        again = (clearlane.folder / "new" / "psl.txt").read_text()
        assert judge(opensm.folder, tmp_path / "new", again) == (48 * 47, True)


def spoilt(out: Path) -> Iterator[tuple[str, str, bytes]]:
    """A name, the file it is about, and what is in it instead."""
    whole = {name: (out / name).read_bytes() for name in FILES}
    for name, data in whole.items():
        yield "empty", name, b""
        for part in (3, 2, 1.2):
            yield f"cut at 1/{part}", name, data[: int(len(data) / part)]
        yield "binary", name, bytes(random.Random(2).randrange(256) for _ in range(5000))
        yield "zeros", name, b"\0" * 3000
        yield "one long line", name, data.replace(b"\n", b" ")
        digits = b"99999999999999999999999"
        yield "giant numbers", name, re.sub(rb"(?<= )\d+", digits, data)
        yield "formats", name, re.sub(rb"0x[0-9a-f]+", b"%s%n%n", data)
        yield "escapes", name, b"\x1b]0;x\x07" + "\u202e".encode() + data
    tables = readers.lfts(whole["lfts.txt"].decode())
    first, second = sorted(tables)[:2]
    loop = {(first, lid): 1 for lid in tables[first]} | {(second, lid): 2 for lid in tables[second]}
    text = readers.edit_lfts(whole["lfts.txt"].decode(), loop)
    yield "loops", "lfts.txt", text.encode()
    yield "another fabric", "lfts.txt", re.sub(rb"guid 0x0ac1", b"guid 0x0bc1", whole["lfts.txt"])
    yield "port 254", "lfts.txt", re.sub(rb"(?m)^(0x\S+) \d+", rb"\1 254", whole["lfts.txt"])
    yield "lane 15", "sl2vl.dump", re.sub(rb": .*", b": " + b"15 " * 16, whole["sl2vl.dump"])
    groups = whole["path-groups.txt"]
    one = re.sub(rb" to .*", lambda row: b" to" + b" 0" * row[0].count(b" ", 4), groups)
    yield "one SL", "path-groups.txt", one


def test_no_file_brings_opensm_down(
    clearlane: Clearlane, plugin: Path, tmp_path: Path
) -> None:
    """Each in the folder of an OpenSM that has good tables, and of one that starts with it."""
    netlist, out = routed(clearlane, "torus:5x5", "--engine", "dor", "--lanes", 8)
    levels, lids = (out / "psl.txt").read_text(), (out / "guid2lid").read_text()
    flat = re.sub(r" \d+$", " 0", levels, flags=re.MULTILINE)
    cases = list(spoilt(out))
    good = {name: (out / name).read_bytes() for name in FILES}
    with subnet(netlist, plugin) as simulated:
        with simulated.running_opensm(conf(f"folder={out}"), guid2lid=lids) as opensm:
            wanted = tables_of(opensm.folder)
            for kind, name, data in cases:
                (out / name).write_bytes(data)
                lines = said(opensm.sweep())
                taken = [line for line in lines if re.match(r"[^:]* (?<!not )taken: ", line)]
                assert len(taken) == 1, (kind, name, lines)
                assert taken[0].startswith(("last good", "tables of the files")), (kind, lines)
                assert all(len(line) < 1000 and line.isprintable() for line in lines), kind
                assert tables_of(opensm.folder) == wanted, (kind, name)
                (out / name).write_bytes(good[name])
            assert said(opensm.sweep())[0].startswith("tables of the files taken")
        for number, (kind, name, data) in enumerate(cases):
            (out / name).write_bytes(data)
            keys, label = conf(f"folder={out}"), f"started-{number}"
            started = simulated.opensm(keys, name=label, guid2lid=lids)
            lines = said(started.log)
            assert walk_all(started.folder) == 25 * 24
            safe = any(line.startswith("safe engine up-down taken") for line in lines)
            assert safe or any(line.startswith("tables of the files taken") for line in lines)
            verdict = judge(started.folder, tmp_path / "judge", flat if safe else levels)
            assert verdict == (600, True), (kind, name, lines)
            (out / name).write_bytes(good[name])


def refused(simulated: Ibsim, keys: dict[str, object]) -> str:
    """The log of an OpenSM that has no engine and so tries again and again."""
    log, tried = "", "No routing engine able to successfully configure"
    # A machine that is busy with other things needs longer until then.
    for limit_s in [5, 20, 80, 320]:
        with pytest.raises(PeerError, match=f"was not done after {limit_s} s"):
            simulated.opensm(keys, name="refused", limit_s=limit_s)
        log = (simulated.folder / "refused" / "osm.log").read_text()
        if tried in log:
            break
    assert tried in log and "SUBNET UP" not in log
    return log


def test_a_folder_that_is_not_there_is_said(clearlane: Clearlane, plugin: Path) -> None:
    clearlane("fabric", "build", "torus:3x3", "-o", "fabric.topo")
    with subnet(clearlane.folder / "fabric.topo", plugin) as simulated:
        started = simulated.opensm(conf("folder=/nowhere"))
        assert "/nowhere/lfts.txt: there is no such file" in said(started.log)[0]
        assert said(started.log)[1].startswith("safe engine up-down taken")
        # Options that cannot be understood leave OpenSM without an engine, and it says so.
        log = refused(simulated, conf("colour=red"))
        assert "unknown key" in said(log)[0] and "cannot load plugin 'clearlane'" in log


SUPPRESSED = "".join(
    f"interceptor_via_lib:{name}\n" for name in ("libumad2sim", "libosm", "libibumad")
)
"""Reads past the end that are umad2sim's and OpenSM's own."""


def test_no_byte_out_of_place_in_opensm(
    clearlane: Clearlane, plugin: Path, tmp_path: Path
) -> None:
    """The shim and all it touches under AddressSanitizer and UBSan, which end OpenSM at once."""
    netlist, out = routed(clearlane, "torus:5x5", "--engine", "dor", "--lanes", 8)
    name = subprocess.check_output(["cc", "-print-file-name=libasan.so"], text=True).strip()
    (tmp_path / "suppressed").write_text(SUPPRESSED)
    with subnet(netlist, plugin.parent / "sanitized" / plugin.name) as simulated:
        simulated.preload.append(name)
        # OpenSM itself leaves memory behind.
        options = f"detect_leaks=0:suppressions={tmp_path / 'suppressed'}"
        simulated.env["ASAN_OPTIONS"] = options
        for number, options in enumerate([f"folder={out}", "mode=vftree", "folder=/nowhere"]):
            for lmc in (0, 2):
                keys = conf(options, lmc=lmc)
                done = simulated.opensm(keys, name=f"sanitized-{number}-{lmc}")
                assert any(" taken: " in line for line in said(done.log)), done.log[-2000:]
        with simulated.running_opensm(conf(f"folder={out}")) as opensm:
            simulated.unlink("S-" + re.findall(r'"S-([0-9a-f]+)"', netlist.read_text())[0], 1)
            opensm.sweep()
            opensm.settled()
            assert simulated.service_levels([(1, 2)])[0] < 16
            assert any("safe engine" in line for line in said(opensm.log))


def test_bad_calls_do_no_harm(plugin: Path, tmp_path: Path) -> None:
    """Every call of the interface, as no shim should make it, under the same sanitizers."""
    (tmp_path / "lfts.txt").write_bytes(random.Random(3).randbytes(3000))
    program = plugin.parent / "sanitized" / "interface_test"
    done = run_bounded([str(program), str(tmp_path)], env=os.environ, cwd=tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr[-3000:]


def test_only_what_opensm_looks_up_is_exported(plugin: Path) -> None:
    done = subprocess.run(
        ["nm", "-D", "--defined-only", plugin], check=True, capture_output=True, text=True
    )
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["osm_event_plugin"]


def test_another_opensm_refuses_the_plugin(
    clearlane: Clearlane, plugin: Path, tmp_path: Path
) -> None:
    """Built for another version, which stands in the library as a text."""
    clearlane("fabric", "build", "star:2", "-o", "fabric.topo")
    data = plugin.read_bytes()
    assert data.count(b"OpenSM 3.3.23\0") == 1
    (tmp_path / "libclearlane.so").write_bytes(data.replace(b"OpenSM 3.3.23\0", b"OpenSM 3.3.99\0"))
    with subnet(clearlane.folder / "fabric.topo", tmp_path / "libclearlane.so") as simulated:
        log = refused(simulated, conf(""))
        assert "version mismatch - plugin was built against OpenSM 3.3.99" in log
