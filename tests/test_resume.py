"""Commands that are killed at random instants and resumed come to the same bytes as one that was
never stopped: with mechanisms, adaptive routing, crossbars, programs and in sweeps, on other
numbers of threads and partitions."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import Clearlane
from peers import HANG_S, wait_for_work

HEAD = """schema = 1
name = "killed"
summary = "a run that is killed and resumed"

[fabric]
build = "{build}"

[subnet]
{subnet}

[sim]
preset = "qdr"
{sim}
"""
HOT = """
[[traffic]]
name = "hot"
class = "hot"
pattern = { kind = "incast", to = "host0000" }
senders = { every = 3, offset = 1 }
load = 1.0
size = "64 KiB"

[[traffic]]
name = "others"
class = "victim"
pattern = { kind = "random-permutation", seed = 1 }
senders = { every = 3, offset = 2 }
load = 0.3
size = { mix = [["512 B", 0.5], ["4 KiB", 0.4], ["64 KiB", 0.1]] }

[run]
duration = "@"
seeds = 2
"""
PROGRAM = """
[[traffic]]
name = "ring"
class = "victim"
senders = { every = 2 }
program = { kind = "ring-allreduce", size = "@" }

[[traffic]]
name = "hot"
class = "hot"
pattern = { kind = "incast", to = "host0001" }
senders = { every = 4, offset = 3 }
load = 1.0
size = "64 KiB"

[run]
duration = "60 s"
seeds = 1
ends = "programs"
"""


def text(build: str, rest: str, size: str, subnet: str, sim: str = "", more: str = "") -> str:
    return HEAD.format(build=build, subnet=subnet, sim=sim) + more + rest.replace("@", size)


TREE = "leaf-spine:leaves=6,hosts=6,spines=3"
CONTROL = (
    '[control]\nwhen = "iba-cc"\n\n[control.iba-cc]\npreset = "gran-2010"\n'
    '[[published]]\nname = "by itself"\nmeasure = { kind = "slowdown-uncontrolled" }\n'
)
EXPERIMENTS = {
    "iba-cc": text(TREE, HOT, "300 ms", 'engine = "fat-tree"', more=CONTROL),
    "dcqcn and drb": text(
        "torus:6x6", HOT, "48 ms", 'engine = "multipath"\nlanes = 8\nlmc = 2',
        more='[control]\nwhen = "dcqcn"\nwhich = "drb"\n',
    ),
    "adaptive": text(TREE, HOT, "70 ms", 'engine = "fat-tree"\nadaptive = "yes"'),
    "crossbars": text(
        TREE, HOT, "30 ms", 'engine = "fat-tree"',
        'crossbar_speedup = 2.0\noutput_buffer = "16 KiB"\ncrossbar_reads = "port"\n'
        'memory_rate = "8 GB/s"',
    ),
    "program": text(TREE, PROGRAM, "1 GiB", 'engine = "fat-tree"'),
    "program under control": text(
        TREE, PROGRAM, "768 MiB", 'engine = "fat-tree"',
        more='[control]\nwhen = "iba-cc"\n\n[control.iba-cc]\npreset = "gran-2010"\n',
    ),
}
INTERRUPTED = text(TREE, HOT, "60 ms", 'engine = "fat-tree"', more=CONTROL)
SWEEP = text(
    TREE, HOT, "24 ms", 'engine = "fat-tree"',
    more="[sweep]\ntraffic.load = [0.3, 0.6, 1.0]\n\n",
)


@dataclass
class Kills:
    """Whom to kill when: every case has a stream of its own."""

    chance: random.Random
    count: int = 0

    def call(self, binary: Path, folder: Path, words: list[str], longest_s: float) -> bool:
        """Runs a command and kills it at a random instant. Whether it ended before."""
        with subprocess.Popen(
            [binary, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                _, problem = process.communicate(timeout=self.chance.uniform(0.3, longest_s))
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.communicate()
                self.count += 1
                return False
            assert process.returncode == 0, problem
            return True


def digests(folder: Path) -> dict[str, str]:
    """What results are but for a sweep's list of its points, which is in the order in which they
    were finished."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    found = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.name != "points.jsonl"
    }
    assert {"experiment.toml", "report.html"} < found.keys(), list(found)
    return found


# Seven cases of so many are more than forty.
KILLS_LEAST = 6
SHORT_S = 2.0
"""A call is killed within so many seconds, until it has been killed often."""
DIVISIONS = [["--threads", "2"], ["--threads", "1", "--partitions", "3"], ["--threads", "1"]]


def killed_and_resumed(kills: Kills, binary: Path, folder: Path, begun: list[str]) -> None:
    """A command is begun, killed and resumed until it has ended."""
    kept = folder / "killed.checkpoint"
    ended = kills.call(binary, folder, [*begun, "--force"], SHORT_S)
    for turn in range(60):
        if ended:
            break
        # Either folder is taken: that of the results, or that of what was kept.
        named = ("killed", "killed.checkpoint")[turn % 2]
        resume = ["resume", named, *DIVISIONS[turn % len(DIVISIONS)]]
        # Killed less and less often: it must end.
        longest = SHORT_S if turn < 9 else 120.0
        # What was asked is kept first, and let go of last.
        words = resume if (kept / "command.json").exists() else [*begun, "--force"]
        ended = kills.call(binary, folder, words, longest)
    assert ended
    assert not kept.exists(), "what was kept is let go of"


LONG = ["program", "program under control", "iba-cc", "adaptive", "crossbars"]
"""Experiments that `make test-long` kills. What is left has mechanisms that watch and choose."""


def as_if_never_killed(clearlane: Clearlane, folder: Path, words: list[str], name: str) -> None:
    """Fails unless a command that is killed often enough comes to the bytes of one that is not."""
    clearlane(*words, "--out", "whole")
    whole = digests(folder / "whole")
    kills = Kills(random.Random(name))
    # A machine may be so fast that a command has ended before it is killed often.
    for _ in range(20):
        begun = [*words, "--out", "killed", "--checkpoint-every", "1s"]
        killed_and_resumed(kills, clearlane.binary, folder, begun)
        assert digests(folder / "killed") == whole
        if kills.count >= KILLS_LEAST:
            break
    assert kills.count >= KILLS_LEAST


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in EXPERIMENTS],
)
def test_killed_runs_come_to_the_same_bytes(
    name: str, clearlane: Clearlane, tmp_path: Path
) -> None:
    (tmp_path / "killed.toml").write_text(EXPERIMENTS[name])
    as_if_never_killed(clearlane, tmp_path, ["run", "killed.toml", "--threads", "2"], name)


def test_killed_sweeps_come_to_the_same_bytes(clearlane: Clearlane, tmp_path: Path) -> None:
    (tmp_path / "killed.toml").write_text(SWEEP)
    as_if_never_killed(clearlane, tmp_path, ["sweep", "killed.toml"], "sweep")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_who_is_interrupted_leaves_a_partial_result_and_goes_on(
    number: signal.Signals, clearlane: Clearlane, tmp_path: Path
) -> None:
    (tmp_path / "killed.toml").write_text(INTERRUPTED)
    clearlane("run", "killed.toml", "--out", "whole")
    with subprocess.Popen(
        [clearlane.binary, "run", "killed.toml", "--out", "killed"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:
        wait_for_work(process, 1.0)
        process.send_signal(number)
        _, said = process.communicate(timeout=HANG_S)
    assert process.returncode == 4, said
    assert "to continue: clearlane resume killed" in said
    partial = json.loads((tmp_path / "killed" / "summary.json").read_text())
    assert partial["status"] == "partial"
    # A changed experiment is refused before anything of it is kept beside what is there.
    def states() -> dict[str, bytes]:
        kept = sorted((tmp_path / "killed.checkpoint").iterdir())
        return {path.name: path.read_bytes() for path in kept}

    kept = states()
    assert len(kept) > 1, "a state at least, beside the command"
    asked = (tmp_path / "killed.toml").read_text()
    (tmp_path / "killed.toml").write_text(asked.replace("load = 0.3", "load = 0.2"))
    assert "belongs to another run" in clearlane("resume", "killed", code=2).stderr
    assert states() == kept
    (tmp_path / "killed.toml").write_text(asked)
    clearlane("resume", "killed", "--threads", "2")
    assert digests(tmp_path / "killed") == digests(tmp_path / "whole")


def interrupted(clearlane: Clearlane, folder: Path, words: list[str], work_s: float = 1.0) -> str:
    """Interrupts a command after so much work, in CPU seconds. What it said."""
    with subprocess.Popen(
        [clearlane.binary, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for_work(process, work_s)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=HANG_S)
    assert process.returncode == 4, said
    return said


def test_results_in_the_folder_of_the_call_are_gone_on_with(
    clearlane: Clearlane, tmp_path: Path
) -> None:
    (tmp_path / "killed.toml").write_text(INTERRUPTED)
    here = tmp_path / "here"
    here.mkdir()
    said = interrupted(clearlane, here, ["run", "../killed.toml", "--out", "."])
    assert "to continue: clearlane resume ." in said
    assert (tmp_path / "here.checkpoint" / "command.json").is_file()
    clearlane("resume", "here")
    assert not (tmp_path / "here.checkpoint").exists()
    assert json.loads((here / "summary.json").read_text())["status"] != "partial"
    again = clearlane("resume", "here", code=2)
    assert "all its runs have ended" in again.stderr
    assert "no such folder" in clearlane("resume", "hare", code=2).stderr


def test_files_of_others_are_neither_deleted_nor_mixed_with(
    clearlane: Clearlane, tmp_path: Path
) -> None:
    (tmp_path / "killed.toml").write_text(INTERRUPTED)
    theirs = tmp_path / "killed.checkpoint" / "thesis.tex"
    theirs.parent.mkdir()
    theirs.write_text("years")
    for force in [[], ["--force"]]:
        words = ["run", "killed.toml", "--out", "killed", "--checkpoint-every", "1s", *force]
        assert "holds files that are not saved runs" in clearlane(*words, code=2).stderr
    assert theirs.read_text() == "years"
    assert not (tmp_path / "killed").exists()


def test_a_sweep_called_again_goes_on_with_its_runs(clearlane: Clearlane, tmp_path: Path) -> None:
    (tmp_path / "killed.toml").write_text(SWEEP)
    clearlane("sweep", "killed.toml", "--out", "whole")
    call = ["sweep", "killed.toml", "--out", "killed", "--jobs", "1"]
    states: list[Path] = []
    # A signal may come between two runs, when none is under way.
    for work_s in (1.0, 0.7, 1.3, 0.9, 1.1):
        for folder in ("killed", "killed.checkpoint"):
            shutil.rmtree(tmp_path / folder, ignore_errors=True)
        said = interrupted(clearlane, tmp_path, call, work_s)
        assert "to continue: clearlane resume killed" in said
        states = list((tmp_path / "killed.checkpoint").glob("point-*/*.state"))
        if states:
            break
    assert states, "a run under way was not kept"
    # A state of another experiment is let go; what is kept of this one is gone on with.
    (states[0].parent / "0-77.state").write_text("of another")
    clearlane(*call)
    assert not (tmp_path / "killed.checkpoint").exists()
    assert digests(tmp_path / "killed") == digests(tmp_path / "whole")
