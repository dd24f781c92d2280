"""What `clearlane deploy` writes, a stock OpenSM runs: our service levels, our tables where tables
are new, lanes on switches, and the way back."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import readers
from conftest import Clearlane
from peers import Ibsim, RunningOpenSm, ibdmchk, run_bounded

PAIRS = 200
"""Pairs of hosts whose service level is asked for, half of them the other way round."""


def conf_of(folder: Path, file: str = "opensm.conf.add") -> dict[str, str]:
    """Keys and values of opensm.conf, with the folder's own files in place of the site's."""
    lines = (folder / file).read_text().splitlines()
    conf = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    conf["qos_policy_file"] = str(folder / "qos-policy.conf")
    if "lfts_file" in conf:
        conf["lfts_file"] = str(folder / "lfts.txt")
    return conf


def lids(running: RunningOpenSm) -> dict[int, int]:
    """LID by port GUID, as OpenSM has given them."""
    lines = (running.folder / "cache" / "guid2lid").read_text().splitlines()
    words = [line.split() for line in lines if line]
    return {int(guid, 16): int(lid, 16) for guid, lid, _ in words}


def answered(subnet: Ibsim, running: RunningOpenSm, pairs: list[tuple[int, int]]) -> list[int]:
    """The service level that OpenSM answers for each pair of port GUIDs."""
    lid = lids(running)
    return subnet.service_levels([(lid[source], lid[to]) for source, to in pairs])


class Levels:
    """The service levels of a folder, from its path-groups.txt."""

    def __init__(self, folder: Path) -> None:
        self.group: dict[int, int] = {}
        self.rows: list[list[int]] = []
        for line in (folder / "path-groups.txt").read_text().splitlines():
            words = line.split()
            if words[0] == "group":
                self.group |= {int(guid, 16): int(words[1]) for guid in words[2:]}
            elif words[0] == "from":
                self.rows.append([int(word) for word in words[3:]])

    def __call__(self, pair: tuple[int, int]) -> int:
        return self.rows[self.group[pair[0]]][self.group[pair[1]]]

    def sample(self, seed: int) -> list[tuple[int, int]]:
        """Pairs of hosts, each both ways."""
        draw, hosts = random.Random(seed), sorted(self.group)
        pairs = [tuple(draw.sample(hosts, 2)) for _ in range(PAIRS // 2)]
        return [pair for a, b in pairs for pair in ((a, b), (b, a))]


def fabric(name: str, clearlane: Clearlane) -> Path:
    """A tree, the same with cables cut, or the shipped site, which is uneven."""
    if name == "site":
        site = Path(__file__).parent.parent / "fixtures/site/site.ibnetdiscover"
        clearlane("fabric", "convert", site, "-o", "site.topo")
        return clearlane.folder / "site.topo"
    clearlane("fabric", "build", "fat-tree:648", "-o", "tree.topo")
    if name == "damaged":
        clearlane("fabric", "cut", "tree.topo", "--random", 13, "--seed", 1, "-o", "damaged.topo")
    return clearlane.folder / f"{name}.topo"


@pytest.mark.parametrize(
    ("name", "engine", "flags", "levels"),
    [
        ("tree", "fat-tree", ["--lane-policy", "vftree", "--lanes", 8], 8),
        ("damaged", "up-down", ["--lane-policy", "vftree", "--lanes", 3], 3),
        ("site", "up-down", ["--lane-policy", "vftree", "--lanes", 5], 5),
        ("site", "up-down", ["--lane-policy", "by-class", "--hot", "storage01"], 2),
    ],
)
def test_opensm_answers_our_service_levels_and_obeys_our_tables(
    name: str,
    engine: str,
    flags: list[str],
    levels: int,
    clearlane: Clearlane,
    ibsim: Callable[[Path], Ibsim],
) -> None:
    answers(fabric(name, clearlane), engine, flags, levels, clearlane, ibsim)


@pytest.mark.parametrize("dead", [0, 6])
def test_needs_shared_a_real_irregular_fabric_gets_our_levels(
    dead: int, shared: Path, clearlane: Clearlane, ibsim: Callable[[Path], Ibsim]
) -> None:
    """Hosts on spines too, which OpenSM's ftree refuses; whole, and with cables cut."""
    source = shared / "data/fabrics/loginoff_qdr_fdr10.ibnetdiscover"
    clearlane("fabric", "convert", source, "-o", "whole.topo")
    netlist = clearlane.folder / "whole.topo"
    if dead:
        clearlane("fabric", "cut", netlist, "--random", dead, "--seed", 1, "-o", "cut.topo")
        netlist = clearlane.folder / "cut.topo"
    answers(netlist, "up-down", ["--lane-policy", "vftree", "--lanes", 4], 4, clearlane, ibsim)


def answers(
    netlist: Path,
    engine: str,
    flags: list[str],
    levels: int,
    clearlane: Clearlane,
    ibsim: Callable[[Path], Ibsim],
) -> None:
    """Deploys and asks: service levels of sampled pairs, tables, lanes of switches."""
    clearlane("deploy", netlist, "--engine", engine, *flags, "-o", "deploy")
    folder = clearlane.folder / "deploy"
    ours = Levels(folder)
    pairs = ours.sample(seed=14)
    if "storage01" in flags:
        # Two hosts in a hundred are hot at most: every other pair has the hot one.
        hot = next(guid for guid in ours.group if ours.group[guid] == 1)
        pairs += [pair for a, _ in pairs if a != hot for pair in ((a, hot), (hot, a))]
    guid2lid = (folder / "guid2lid").read_text()
    with ibsim(netlist) as subnet:
        with subnet.running_opensm(conf_of(folder), guid2lid=guid2lid) as running:
            assert "file tables configured on all switches" in running.log
            assert "ERR" not in running.log
            assert answered(subnet, running, pairs) == [ours(pair) for pair in pairs]
            check_lanes(subnet, folder, (running.folder / "opensm-sl2vl.dump").read_text())
        tables = readers.lfts((running.folder / "opensm-lfts.dump").read_text())
        assert tables == readers.lfts((folder / "lfts.txt").read_text())
    assert {ours(pair) for pair in pairs} == set(range(levels))


def check_lanes(subnet: Ibsim, folder: Path, dump: str) -> None:
    """SL2VL by input and output and VL arbitration of a cabled port of some switches, as smpquery
    reads them. Those of an adapter come back from ibsim as garbage and are not looked at."""
    conf = conf_of(folder)
    lanes = [int(lane) for lane in conf["qos_sl2vl"].split(",")]
    weights = [tuple(map(int, entry.split(":"))) for entry in conf["qos_vlarb_low"].split(",")]
    # OpenSM's dump has the outputs with a cable.
    heading = r"^Switch .*, base LID (\d+), .*\n#.*\n#.*\n\d+ +(\d+) "
    switches = re.findall(heading, dump, re.MULTILINE)
    assert len(switches) == len(re.findall(r"^Switch ", dump, re.MULTILINE)) > 4
    for lid, port in switches[:: len(switches) // 4]:
        said = subnet.client(["smpquery", "sl2vl", lid, port]).stdout
        rows = re.findall(rf"^ports: in +\d+, out +{port}: \|(.*)\|$", said, re.MULTILINE)
        assert len(rows) > 8, said
        for row in rows:
            assert [int(lane) for lane in row.split("|")] == lanes, said
        said = subnet.client(["smpquery", "vlarb", lid, port]).stdout
        low, high = said.split("# High")
        read = [re.findall(r"0x([0-9A-Fa-f]+)", line) for line in low.splitlines() if "|0x" in line]
        entries = [(int(vl, 16), int(w, 16)) for vl, w in zip(*read, strict=True)]
        assert entries[: len(weights)] == weights, said
        assert {weight for _, weight in entries[len(weights) :]} <= {0}, said
        weights_high = [line for line in high.splitlines() if line.startswith("WEIGHT")]
        assert set(re.findall(r"0x([0-9A-Fa-f]+)", weights_high[0])) == {"0"}, said


def test_lanes_alone_leave_the_engine_and_go_back(
    clearlane: Clearlane, ibsim: Callable[[Path], Ibsim]
) -> None:
    """Service levels are laid over a running site by SIGHUP, its engine stays, and with the files
    from before everything is as it was."""
    netlist = fabric("tree", clearlane)
    with ibsim(netlist) as subnet:
        site = clearlane.folder / "etc"
        site.mkdir()
        level = "    qos-level\n        name: DEFAULT\n        sl: 0\n    end-qos-level\n"
        policy = f"qos-levels\n{level}end-qos-levels\n"
        (site / "qos-policy.conf").write_text(policy)
        before = {
            "routing_engine": "ftree",
            "qos": "FALSE",
            "qos_policy_file": site / "qos-policy.conf",
        }
        with subnet.running_opensm(before) as running:
            conf = running.folder / "opensm.conf"
            kept = {file: file.read_text() for file in (conf, site / "qos-policy.conf")}
            dump = running.folder / "opensm-lfts.dump"
            tables = readers.lfts(dump.read_text())
            (clearlane.folder / "site.lft").write_text(dump.read_text())
            (clearlane.folder / "site.lst").write_text(
                (running.folder / "opensm-subnet.lst").read_text()
            )
            said = clearlane(
                *("deploy", "site.lst", "--lft", "site.lft", "--lane-policy", "vftree"),
                *("--opensm-conf", conf, "--qos-policy", site / "qos-policy.conf"),
                *("--clients", "rdma-cm,mvapich2", "-o", "deploy"),
            ).stdout
            assert "routing engine stay as they are" in said and "SIGHUP" in said, said
            folder = clearlane.folder / "deploy"
            ours = Levels(folder)
            pairs = ours.sample(seed=1)
            assert answered(subnet, running, pairs[:20]) == [0] * 20
            conf.write_text((folder / "opensm.conf").read_text())
            # One pair of hosts before all others: the two that the README asks for.
            (site / "qos-policy.conf").write_text((folder / "one-pair.conf").read_text())
            assert "ERR" not in running.sweep()
            one = tried(folder)
            assert answered(subnet, running, one) == [ours(pair) for pair in one] != [0, 0]
            others = [pair for pair in pairs if pair not in one][:40]
            assert answered(subnet, running, others) == [0] * 40
            (site / "qos-policy.conf").write_text((folder / "qos-policy.conf").read_text())
            log = running.sweep()
            assert "ftree tables configured" in log and "ERR" not in log, log
            assert answered(subnet, running, pairs) == [ours(pair) for pair in pairs]
            assert readers.lfts(dump.read_text()) == tables
            for file, text in kept.items():
                file.write_text(text)
            running.sweep()
            assert answered(subnet, running, pairs) == [0] * len(pairs)
            assert readers.lfts(dump.read_text()) == tables


def tried(folder: Path) -> list[tuple[int, int]]:
    """The pair of port GUIDs in one-pair.conf, both ways."""
    text = (folder / "one-pair.conf").read_text()
    a, b = (int(guid, 16) for guid in re.findall(r"port-guid: (0x[0-9a-f]+)\n", text))
    return [(a, b), (b, a)]


def test_new_tables_go_back(clearlane: Clearlane, ibsim: Callable[[Path], Ibsim]) -> None:
    """Tables, LIDs and service levels are as before once the files from before are back: OpenSM is
    started again both ways, as the README says."""
    netlist = fabric("site", clearlane)
    with ibsim(netlist) as subnet:
        before = {"routing_engine": "updn", "qos": "FALSE"}
        with subnet.running_opensm(before) as running:
            dump = running.folder / "opensm-lfts.dump"
            tables = readers.lfts(dump.read_text())
            kept = lids(running)
            cache = (running.folder / "cache" / "guid2lid").read_text()
            (clearlane.folder / "opensm.conf").write_text("routing_engine updn\nqos FALSE\n")
        # LIDs are new as well, without those of the file.
        flags = ["--engine", "up-down", "--lmc", 0, "--lane-policy", "vftree", "--lanes", 4]
        clearlane("deploy", netlist, *flags, "--opensm-conf", "opensm.conf", "-o", "deploy")
        folder = clearlane.folder / "deploy"
        back = (folder / "README").read_text().split("6. Go back")[1]
        assert "systemctl start opensm" in back and "/var/cache/opensm" in back, back
        ours = Levels(folder)
        pairs = ours.sample(seed=3)[:60]
        guid2lid = (folder / "guid2lid").read_text()
        conf = conf_of(folder, "opensm.conf")
        with subnet.running_opensm(conf, name="new", guid2lid=guid2lid) as running:
            new = readers.lfts((running.folder / "opensm-lfts.dump").read_text())
            assert new == readers.lfts((folder / "lfts.txt").read_text()) != tables
            assert answered(subnet, running, pairs) == [ours(pair) for pair in pairs]
            assert lids(running) != kept
        with subnet.running_opensm(before, name="back", guid2lid=cache) as running:
            assert readers.lfts((running.folder / "opensm-lfts.dump").read_text()) == tables
            assert lids(running) == kept
            assert answered(subnet, running, pairs) == [0] * len(pairs)


@pytest.mark.parametrize("has_conf", [True, False])
def test_the_readmes_commands_bring_every_file_back(clearlane: Clearlane, has_conf: bool) -> None:
    """Steps 1, 2, 3 and 6 as they are written, but for OpenSM itself and for where the site is."""
    clearlane("fabric", "build", "leaf-spine:leaves=4,hosts=2,spines=2", "-o", "small.topo")
    site = clearlane.folder / "site"
    etc, cache = site / "etc/opensm", site / "var/cache/opensm"
    for folder in (etc, cache, site / "root"):
        folder.mkdir(parents=True)
    kept = {"partitions.conf": "Default=0x7fff:ALL;\n"}
    if has_conf:
        # Without a line feed at the end.
        kept |= {"opensm.conf": "log_file /var/log/opensm.log", "qos-policy.conf": "# ours\n"}
    for name, text in kept.items():
        (etc / name).write_text(text)
    (cache / "guid2lid").write_text("0x1 0x1 0x1\n")
    flags = ["--engine", "up-down", "--lane-policy", "vftree", "-o", "deploy"]
    clearlane("deploy", "small.topo", *flags)
    readme = (clearlane.folder / "deploy/README").read_text()
    steps = dict(re.findall(r"^(\d)\. .*\n-+\n((?:.+\n)+)", readme, re.MULTILINE))

    def does(number: str) -> None:
        lines = [line for line in steps[number].splitlines() if line.startswith("  ")]
        of_opensm = ("systemctl", "pkill", "sleep", "dump_fts", "grep", "saquery", "ERR")
        kept = [line for line in lines if not line.strip().startswith(of_opensm)]
        script = "\n".join(kept).replace("tar -C /", f"tar -C {site}")
        for place in ("/etc/opensm", "/var/cache/opensm", "/root"):
            script = re.sub(rf"(?<=[ ]){place}", f"{site}{place}", script)
        run_bounded(["bash", "-euc", script], env=os.environ, cwd=clearlane.folder / "deploy")

    does("1")
    does("2")
    conf = (etc / "opensm.conf").read_text().splitlines()
    assert "qos TRUE" in conf and "routing_engine file" in conf, conf
    assert not has_conf or "log_file /var/log/opensm.log" in conf, conf
    does("3")
    assert "clearlane-1" in (etc / "qos-policy.conf").read_text()
    assert (etc / "lfts.txt").exists() and "0x1 0x1" not in (cache / "guid2lid").read_text()
    does("6")
    assert {file.name: file.read_text() for file in etc.iterdir()} == kept
    assert (cache / "guid2lid").read_text() == "0x1 0x1 0x1\n"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--qos-policy", "small.topo"], "is in no section; OpenSM would drop"),
        (["--opensm-conf", "small.topo"], "small.topo: is no opensm.conf"),
        (["--partitions", "small.topo"], "small.topo: is no partitions.conf"),
        (["--opensm-folder", ""], "is no folder to deploy into"),
        (["--opensm-folder", "/etc/my opensm"], "is no folder to deploy into"),
        (["--hot", "host0"], "asks for no hot hosts"),
        (["--link-lanes", "leaf00[1]=2", "--link-lanes", "leaf00[1]=4"], "is named twice"),
    ],
)
def test_files_of_another_kind_and_idle_flags_are_refused(
    flags: list[str], words: str, clearlane: Clearlane
) -> None:
    clearlane("fabric", "build", "leaf-spine:leaves=4,hosts=2,spines=2", "-o", "small.topo")
    command = ["deploy", "small.topo", "--engine", "up-down", "--lane-policy", "vftree"]
    done = clearlane(*command, *flags, "-o", "deploy", code=2)
    assert words in done.stderr, done.stderr
    assert not (clearlane.folder / "deploy").exists()


def test_going_back_needs_a_start_where_the_old_file_leaves_a_key_out(
    clearlane: Clearlane,
) -> None:
    """OpenSM that is told by SIGHUP keeps a value that the file no longer names."""
    clearlane("fabric", "build", "leaf-spine:leaves=4,hosts=2,spines=2", "-o", "small.topo")
    clearlane("route", "small.topo", "--engine", "up-down", "-o", "site")
    command = ["deploy", "small.topo", "--lft", "site/lfts.txt", "--lane-policy", "vftree"]
    whole = (
        "qos FALSE\nqos_max_vls 0\nqos_high_limit 0\nqos_vlarb_high 0:0\nqos_vlarb_low 0:1\n"
        "qos_sl2vl 0\n"
    )
    for name, text, back in [
        ("whole", whole, "pkill -HUP -x opensm"),
        ("bare", "sm_priority 3\n", "systemctl restart opensm"),
    ]:
        (clearlane.folder / f"{name}.conf").write_text(text)
        clearlane(*command, "--opensm-conf", f"{name}.conf", "-o", name)
        readme = (clearlane.folder / name / "README").read_text()
        forth, way_back = readme.split("6. Go back")
        assert "pkill -HUP -x opensm" in forth and back in way_back, readme
    # Without the site's file it is not known whether OpenSM has read one.
    clearlane(*command, "-o", "none")
    readme = (clearlane.folder / "none/README").read_text()
    assert "pkill -HUP" not in readme.split("3. Load")[0], readme
    # A site's own policy is not replaced by the way.
    (clearlane.folder / "own.conf").write_text("qos TRUE\nqos_policy_file /etc/opensm/own\n")
    done = clearlane(*command, "--opensm-conf", "own.conf", "-o", "own", code=2)
    assert "own.conf:2: the site uses QoS and may have a policy" in done.stderr, done.stderr


KNOWN = {f"AC{number:02}" for number in (*range(1, 7), *range(10, 15))}
"""What OpenSM logs of a policy that it drops."""


SITE_POLICY = """
port-groups
    port-group
        name: all of us
        node-type: CA
    end-port-group
end-port-groups
qos-setup
    sl2vl-tables
        sl2vl-scope
            group: all of us
            from: *
            to: *
            sl2vl-table: 0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7
        end-sl2vl-scope
    end-sl2vl-tables
end-qos-setup
qos-ulps
    default : 6 # the site's own
    ipoib : 5
end-qos-ulps
qos-levels
    qos-level
        name: bulk
        sl: 7
    end-qos-level
end-qos-levels
qos-match-rules
    qos-match-rule
        use: bulk by class
        qos-class: 9
        qos-level-name: bulk
    end-qos-match-rule
end-qos-match-rules
"""
"""A policy with sections of every kind."""


def test_a_sites_own_policy_is_added_to(
    clearlane: Clearlane, ibsim: Callable[[Path], Ibsim]
) -> None:
    netlist = fabric("tree", clearlane)
    (clearlane.folder / "site.conf").write_text(SITE_POLICY)
    flags = ["--engine", "fat-tree", "--lane-policy", "vftree", "--lanes", 4]
    clearlane("deploy", netlist, *flags, "--qos-policy", "site.conf", "-o", "deploy")
    folder = clearlane.folder / "deploy"
    whole = (folder / "qos-policy.conf").read_text()
    kept = [line for line in SITE_POLICY.splitlines() if line not in whole.splitlines()]
    assert not kept, kept
    ours = Levels(folder)
    pairs = ours.sample(seed=2)[:40]
    guid2lid = (folder / "guid2lid").read_text()
    with ibsim(netlist) as subnet:
        with subnet.running_opensm(conf_of(folder), guid2lid=guid2lid) as running:
            assert "ERR" not in running.log
            # Level 0 too, which is not the site's default.
            assert answered(subnet, running, pairs) == [ours(pair) for pair in pairs]
    assert {ours(pair) for pair in pairs} == set(range(4))


def test_a_broken_policy_is_dropped_with_the_words_the_readme_names(
    clearlane: Clearlane, ibsim: Callable[[Path], Ibsim]
) -> None:
    netlist = fabric("tree", clearlane)
    clearlane("deploy", netlist, "--engine", "fat-tree", "--lane-policy", "vftree", "-o", "deploy")
    folder = clearlane.folder / "deploy"
    whole = (folder / "qos-policy.conf").read_text()
    readme = (folder / "README").read_text()
    assert "ERR AC01 to AC06" in readme and "ERR AC10 to AC14" in readme
    draw = random.Random(5)
    texts = {whole[: draw.randrange(len(whole))] for _ in range(3)}
    without_a_level = whole.replace("name: clearlane-sl3", "name: x", 1)
    texts |= {"", "\0\xff" * 400, without_a_level, "port-groups\n" * 2000}
    with ibsim(netlist) as subnet:
        with subnet.running_opensm(
            conf_of(folder), guid2lid=(folder / "guid2lid").read_text()
        ) as running:
            for text in sorted(texts):
                (folder / "qos-policy.conf").write_bytes(text.encode("latin-1"))
                log = running.sweep()
                errors = re.findall(r"ERR (AC\d\d)", log)
                assert errors and set(errors) <= KNOWN, log
            (folder / "qos-policy.conf").write_text(whole)
            assert "ERR" not in running.sweep()


def test_ibdmchk_finds_no_credit_loop_on_our_lanes(
    clearlane: Clearlane, tmp_path: Path
) -> None:
    netlist = fabric("tree", clearlane)
    flags = ["--engine", "fat-tree", "--lane-policy", "vftree", "--lanes", 4]
    clearlane("route", netlist, *flags, "-o", "out")
    out = clearlane.folder / "out"
    verdict = ibdmchk(out, tmp_path, sl_list=out / "psl.txt", sl2vl=out / "sl2vl.dump")
    assert verdict.no_credit_loop and not verdict.errors, verdict.output[-2000:]
    assert verdict.paths == 648 * 647
    said = clearlane("check", netlist, *(f"--lft={out / name}" for name in TABLES)).stdout
    assert "4 lanes" in said, said


TABLES = ["lfts.txt", "sl2vl.dump", "psl.txt"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--lane-policy", "vftree", "--clients", "ucx,rdma-cm"], "one SL for all it sends"),
        (["--lane-policy", "vftree", "--lanes", 2, "--clients", "nccl"], "one SL for all it sends"),
        (["--lane-policy", "by-class"], "none is named"),
        (["--lane-policy", "vf"], 'did you mean "vftree"'),
        (["--lane-policy", "by-class", "--hot", "nobody"], "there is no host `nobody`"),
        ([], "nothing changes"),
        (["--lane-policy", "vftree", "--clients", "openmpi"], "known are rdma-cm"),
        (["--lane-policy", "vftree", "--opensm-conf", "lash.conf"], "lash.conf:2: routing_engine"),
        (["--lane-policy", "vftree", "--qos-policy", "bad.conf"], "bad.conf:1: "),
    ],
)
def test_what_would_not_take_effect_is_refused(
    flags: list[str], words: str, clearlane: Clearlane
) -> None:
    clearlane("fabric", "build", "leaf-spine:leaves=4,hosts=2,spines=2", "-o", "small.topo")
    clearlane("route", "small.topo", "--engine", "up-down", "-o", "site")
    (clearlane.folder / "lash.conf").write_text("qos FALSE\nrouting_engine lash\n")
    (clearlane.folder / "bad.conf").write_text("qos-levels\n")
    arguments = ["deploy", "small.topo", "--lft", "site/lfts.txt", *flags, "-o", "deploy"]
    done = clearlane(*arguments, code=2)
    assert words in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (clearlane.folder / "deploy").exists()


def test_links_with_fewer_lanes_are_left_to_opensm(clearlane: Clearlane) -> None:
    """OpenSM cuts lanes down to what a link has; lanes that depend on ports otherwise it cannot."""
    clearlane("fabric", "build", "leaf-spine:leaves=4,hosts=2,spines=2", "-o", "small.topo")
    flags = ["--engine", "up-down", "--lane-policy", "vftree", "--lanes", 4]
    done = clearlane("deploy", "small.topo", *flags, "--link-lanes", "leaf01[3]=2", "-o", "deploy")
    assert "OperationalVLs" in done.stdout, done.stdout
    conf = conf_of(clearlane.folder / "deploy")
    assert conf["qos_sl2vl"].startswith("0,1,2,3,")
    done = clearlane("deploy", "torus:4x4", "--engine", "dor", "-o", "torus", code=2)
    assert "the lane of an SL depends on the ports of a switch" in done.stderr, done.stderr


def test_hosts_are_hot_by_what_ibqueryerrors_counts(
    clearlane: Clearlane, ibsim: Callable[[Path], Ibsim]
) -> None:
    """Real output of the tool, in which nobody stands out, and with one counter of a busy port."""
    netlist = fabric("site", clearlane)
    with ibsim(netlist) as subnet, subnet.running_opensm({}) as running:
        text = subnet.client(["ibqueryerrors", "--counters"]).stdout
        lft = (running.folder / "opensm-lfts.dump").read_text()
        lst = (running.folder / "opensm-subnet.lst").read_text()
    for name, content in [("idle", text), ("site.lft", lft), ("site.lst", lst)]:
        (clearlane.folder / name).write_text(content)
    command = ["deploy", "site.lst", "--lft", "site.lft", "--lane-policy", "dftree-static"]
    counted = [*command, "--hot-seconds", 1, "--hot-counters"]
    done = clearlane(*counted, "idle", "-o", "deploy", code=2)
    assert "no host stands out" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    # storage01 is at leaf00[4], FDR: nearly all of what a second takes.
    heading = r'^Data Counters for 0x[0-9a-f]+ "leaf00"\n((?:   .*\n)+)'
    leaf = re.search(heading, text, re.MULTILINE)
    assert leaf, text[:2000]
    port = re.search(r"port 4: \[PortXmitData == (\d+) ", leaf.group(1))
    assert port, leaf.group(1)
    at = leaf.start(1) + port.start(1)
    busy = text[:at] + str(54_000_000_000 // 32) + text[at + len(port.group(1)) :]
    (clearlane.folder / "busy").write_text(busy)
    done = clearlane(*counted, "idle", "--hot-counters", "busy", "-o", "deploy")
    assert "hot by what is counted: storage01, busy for up to 99 %" in done.stdout, done.stdout
    assert "1 hot host on slow lane 1" in done.stdout, done.stdout
    done = clearlane(*counted, "busy", "--hot-counters", "idle", "-o", "other", code=2)
    assert "the wrong way round" in done.stderr, done.stderr


def test_hosts_are_hot_by_a_run(clearlane: Clearlane) -> None:
    """The hot receiver of the six nodes, by what a run of them says."""
    root = Path(__file__).parent.parent
    clearlane("run", root / "experiments/vftree-six-node.toml", "--out", "six")
    command = ["deploy", root / "fixtures/six-node/six-node.topo", "--engine", "up-down"]
    command += ["--lane-policy", "by-class", "--hot-run", "six", "-o", "deploy"]
    done = clearlane(*command)
    assert "hot by what is counted: H5, busy for up to 100 %" in done.stdout, done.stdout
    (clearlane.folder / "six/summary.json").write_text('{"variants": []}')
    done = clearlane(*command[:-1], "other", code=2)
    assert "six/summary.json: has no run; give the folder" in done.stderr, done.stderr


def test_needs_shared_site_configurations_are_understood(
    clearlane: Clearlane, shared: Path
) -> None:
    """Options of a real site with NVIDIA's OpenSM: adaptive routing and congestion control in
    firmware are said, with their lines."""
    clearlane("fabric", "build", "leaf-spine:leaves=9,hosts=2,spines=2", "-o", "small.topo")
    clearlane("route", "small.topo", "--engine", "up-down", "-o", "site")
    (clearlane.folder / "none").write_text("")
    for name, said in [
        ("Scenario2AR.conf", ["ar_ftree is adaptive", "mlnx_congestion_control 2", "max_op_vls"]),
        ("Scenario2DR.conf", ["mlnx_congestion_control 1", "mellanoxMail.conf", "max_op_vls"]),
    ]:
        conf = shared / "data/site-configs" / name
        done = clearlane(
            *("deploy", "small.topo", "--lft", "site/lfts.txt", "--lane-policy", "vftree"),
            *("--lanes", 8, "--opensm-conf", conf, "--partitions", "none", "-o", name),
        )
        # Lines are wrapped by how long the path of the file is.
        text = " ".join(done.stdout.split())
        assert all(words in text for words in said), done.stdout
        changed = (clearlane.folder / name / "opensm.conf.diff").read_text().splitlines()
        added = [line for line in changed if line.startswith("+") and not line.startswith("+++")]
        keys = {line[1:].split()[0] for line in added}
        assert keys <= {
            *("qos", "max_op_vls", "qos_max_vls", "qos_high_limit", "qos_vlarb_high"),
            *("qos_vlarb_low", "qos_sl2vl", "qos_policy_file"),
        }
