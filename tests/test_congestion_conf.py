"""Congestion control we write for OpenSM: a stock one loads every line, and says so itself.

What OpenSM does with a line it does not take, as OpenSM 3.3.23 does it: it prints
` Unrecognized token: "cc_..."`, `-E- Parsing error in field cc_..., value out of range` or
`invalid CCT entry` to stdout, skips the line and comes up all the same. So stdout is read, and what
it writes back with `opensm -c`. ibsim knows no congestion control: that a switch or an adapter
obeys is not tested.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT, Clearlane
from peers import Ibsim, OpenSm, run_bounded

COMPLAINT = re.compile(r"unrecognized|error|invalid|must be specified|ignor", re.IGNORECASE)

EXTREME = """
schema = 1
name = "extreme"
fabric = {{ file = "{fabric}" }}
subnet = {{ engine = "min-hop" }}
sim = {{ preset = "sdr-2011" }}
run = {{ duration = "1 ms" }}
[control]
when = "iba-cc"
[control.iba-cc]
threshold = 1
marking_rate = 65535
packet_size = 255
victim_mask = "all"
port_control = "sl"
cct = "given"
cct_entries = [{entries}]
ccti_increase = 255
ccti_limit = {limit}
ccti_min = {limit}
ccti_timer = 65535
trigger_threshold = 255
[[traffic]]
name = "all"
class = "background"
pattern = {{ kind = "uniform" }}
load = 0.3
size = "2 KiB"
"""
"""Every value at its end; the table is the longest line that OpenSM reads."""

Options = dict[tuple[str, ...], str]


def options(text: str) -> Options:
    """What a file in opensm.conf's format sets: (key,) or (key, SL) to value; the last counts."""
    found: Options = {}
    for line in text.splitlines():
        *key, value = line.split("#")[0].split() or [""]
        if key:
            found[tuple(key)] = value
    return found


def complaints(printed: str) -> list[str]:
    """What OpenSM did not take of its configuration. It reads that first."""
    configuration = printed.split("Command Line Arguments")[0]
    return [line for line in configuration.splitlines() if COMPLAINT.search(line)]


def written_back(conf: Path, folder: Path) -> tuple[Options, list[str]]:
    """What OpenSM holds after it read a file, in its own words, and its complaints."""
    out = folder / "written-back.conf"
    command = ["opensm", "-F", str(conf), "-c", str(out)]
    done = run_bounded(command, env=os.environ, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return options(out.read_text()), complaints(done.stdout)


@pytest.fixture
def published(clearlane: Clearlane) -> str:
    """The published settings of the parking lot, as we write them."""
    experiment = ROOT / "experiments" / "parking-lot.toml"
    said = clearlane("control", experiment, "--variant", "cc on", "-o", "published.conf").stdout
    assert said == 'published.conf: congestion control of variant "cc on" for OpenSM\n'
    return (clearlane.folder / "published.conf").read_text()


@pytest.fixture
def extreme(clearlane: Clearlane) -> str:
    """The ends of all ranges, as we write them."""
    entries = ", ".join(['"3:16383"'] * 127)
    fabric = ROOT / "fixtures" / "parking-lot.topo"
    text = EXTREME.format(fabric=fabric, entries=entries, limit=126)
    (clearlane.folder / "extreme.toml").write_text(text)
    return clearlane("control", "extreme.toml", "-o", "-").stdout


@pytest.fixture
def loaded(tmp_path: Path, ibsim: Callable[[Path], Ibsim]) -> Callable[[str], OpenSm]:
    """OpenSM on the parking lot, with a text at the end of its configuration."""

    def load(stanza: str) -> OpenSm:
        with ibsim(ROOT / "fixtures" / "parking-lot.topo") as subnet:
            return subnet.opensm({"routing_engine": "minhop"}, stanza=stanza)

    return load


@pytest.mark.parametrize("which", ["published", "extreme"])
def test_opensm_loads_every_line(
    which: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    loaded: Callable[[str], OpenSm],
) -> None:
    stanza = request.getfixturevalue(which)
    ours = options(stanza)
    assert ours["congestion_control",] == "TRUE"
    # Eleven for the fabric, four for each service level, the table.
    assert len(ours) == 11 + 4 * 16 + 1
    up = loaded(stanza)
    assert complaints(up.printed) == []
    assert "ERR" not in up.log, up.log
    theirs, refused = written_back(up.folder / "opensm.conf", tmp_path)
    assert refused == []
    assert {key: theirs.get(key) for key in ours} == ours
    # OpenSM's own defaults are others: what was found again was read.
    (tmp_path / "empty.conf").write_text("")
    default, _ = written_back(tmp_path / "empty.conf", tmp_path)
    assert {key for key, value in ours.items() if default.get(key) == value} <= {
        ("cc_sw_cong_setting_credit_mask",),
        ("cc_sw_cong_setting_credit_starvation_threshold",),
        ("cc_sw_cong_setting_credit_starvation_return_delay",),
        ("cc_ca_cong_setting_port_control",),
        ("cc_ca_cong_setting_trigger_threshold", "0"),
        ("cc_ca_cong_setting_ccti_min", "0"),
    }


def test_opensm_sends_the_attributes(published: str, loaded: Callable[[str], OpenSm]) -> None:
    """To 2 switches their setting (0x14), to 5 adapters theirs (0x16) and two blocks of 64 entries
    (0x17). ibsim answers the first with status 0x8: it does not know the attribute."""
    answer = r"cc_rcv_mad: Processing received MAD status (0x\w+) for attr ID (\d+) mod (0x\w+)"
    answers = Counter(re.findall(answer, loaded(published).log))
    assert answers == {
        ("0x8", str(0x14), "0x0"): 2,
        ("0x0", str(0x16), "0x0"): 5,
        ("0x0", str(0x17), "0x0"): 5,
        ("0x0", str(0x17), "0x1"): 5,
    }
    off = published.replace("congestion_control TRUE", "congestion_control FALSE")
    assert not re.findall(answer, loaded(off).log)


@pytest.mark.parametrize(
    ("ours", "wrong", "told"),
    [
        (
            "cc_sw_cong_setting_threshold 0x0F",
            "cc_sw_cong_setting_treshold 0x0F",
            ' Unrecognized token: "cc_sw_cong_setting_treshold"',
        ),
        (
            "cc_sw_cong_setting_packet_size 8",
            "cc_sw_cong_setting_packet_size 256",
            "-E- Parsing error in field cc_sw_cong_setting_packet_size, value out of range",
        ),
        (
            "cc_ca_cong_setting_ccti_timer 15 150",
            "cc_ca_cong_setting_ccti_timer 16 150",
            "invalid SL specified",
        ),
        # 1023 characters: the last is taken for a key of its own.
        (
            "cc_cct " + ",".join(f"0:{ccti}" for ccti in range(128)),
            "cc_cct " + ",".join(["0:16383"] * 121 + ["0:1638"] * 7),
            ' Unrecognized token: "8"',
        ),
    ],
)
def test_opensm_comes_up_without_a_line_it_does_not_take(
    ours: str,
    wrong: str,
    told: str,
    published: str,
    tmp_path: Path,
    loaded: Callable[[str], OpenSm],
) -> None:
    """So what the other tests ask for can fail to be there, and they would notice."""
    assert ours in published
    up = loaded(published.replace(ours, wrong))
    assert len(complaints(up.printed)) == 1 and told in up.printed, up.printed
    theirs, refused = written_back(up.folder / "opensm.conf", tmp_path)
    assert len(refused) == 1
    assert any(theirs.get(key) != value for key, value in options(published).items())


def test_a_line_longer_than_opensm_reads_is_not_written(clearlane: Clearlane) -> None:
    entries = ", ".join(['"3:16383"'] * 128)
    fabric = ROOT / "fixtures" / "parking-lot.topo"
    text = EXTREME.format(fabric=fabric, entries=entries, limit=127)
    (clearlane.folder / "long.toml").write_text(text)
    told = clearlane("control", "long.toml", "-o", "long.conf", code=2).stderr
    assert "the line of cc_cct has 1030 characters, and OpenSM reads 1022 of it" in told
    assert not (clearlane.folder / "long.conf").exists()
