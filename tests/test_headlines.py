"""Every experiment that README or docs name is run, whole but for what `PART` names.

What is not simulating (set-up, results, report) is held to a share of the CPU time that a run
takes: how busy the machine is hardly matters to it. The program is the one of `make demo`. The
tables that runs print are those of tests/headlines."""

from __future__ import annotations

import os
import re
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from conftest import ROOT

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "headlines"
"""Folder into which tables go as they are printed."""
GOLDEN = ROOT / "tests/headlines"
"""Folder of the tables as they are to be. README and docs quote these figures."""
SHARE_MOST = 0.15
"""Largest share of a run's CPU time that is not simulating."""
JUDGED_S = 20
"""Runs of less CPU time are not judged: what any command takes is a large share of theirs."""
TOLD_S = 3
"""The program says how long it took, unless it took less than two seconds. A longer run that does
not say so fails."""
LIMIT_S = 4 * 3600
COMMANDS = ROOT / "docs/reference/commands.md"
"""It names experiments to show how commands are called, and quotes no figures."""
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", *(page for page in DOCS if page != COMMANDS)]
ENDS_WITH = {"ring-deadlock": 3}
"""Exit codes that are not 0, and meant."""
BY_RUN = {"drb-path-hotspot", "parking-lot"}
"""Experiments with a grid whose quoted figures are those of `run`."""
PART = {"vftree-648": ["--over", "subnet.lanes=1,8"]}
"""Part of a grid that has all quoted figures."""


def quoted() -> list[str]:
    """Experiments that README or docs name."""
    words = set(re.findall(r"[a-z0-9-]+", " ".join(page.read_text() for page in PAGES)))
    known = sorted(path.stem for path in (ROOT / "experiments").glob("*.toml"))
    return [name for name in known if name in words]


def is_sweep(path: Path) -> bool:
    """Whether a file, or one that it includes, has a grid."""
    experiment = tomllib.loads(path.read_text())
    included = experiment.get("include")
    return "sweep" in experiment or (included is not None and is_sweep(path.parent / included))


@pytest.mark.headline
@pytest.mark.parametrize("name", quoted())
def test_a_headline_ends_and_is_nearly_all_simulating(
    name: str, binary: Path, tmp_path: Path
) -> None:
    path = ROOT / "experiments" / f"{name}.toml"
    swept = is_sweep(path) and name not in BY_RUN
    words = ["sweep" if swept else "run", str(path), "--out", "out", *PART.get(name, [])]
    began = time.monotonic()
    # One run at a time: what is done between two would hide behind others.
    done = subprocess.run(
        [str(binary), *words, "--jobs", "1", "--threads", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    lasted_s = time.monotonic() - began
    assert done.returncode == ENDS_WITH.get(name, 0), done.stderr[-2000:]
    took = re.search(r"CPU ([\d.]+) s, ([\d.]+) s of it simulating", done.stderr)
    assert took or lasted_s <= TOLD_S, f"{lasted_s:.0f} s, and not told:\n{done.stderr[-2000:]}"
    if took:
        whole, simulating = float(took[1]), float(took[2])
        share = 1 - simulating / whole
        print(f"\n{name}: CPU {whole:.0f} s, {100 * share:.1f} % of it not simulating")
        assert whole < JUDGED_S or share <= SHARE_MOST, done.stderr
    TARGET.mkdir(parents=True, exist_ok=True)
    printed, golden = TARGET / f"{name}.txt", GOLDEN / f"{name}.txt"
    # Tables name files by absolute path, golden files relative to the checkout.
    table = done.stdout.replace(f"{ROOT}/", "")
    printed.write_text(table)
    assert golden.exists() and table == golden.read_text(), (
        f"{printed} is not {golden}; if that is meant, copy it, and mend what README and docs quote"
    )


def test_what_readme_and_docs_show_of_headlines_is_what_they_print() -> None:
    """Blocks that begin with a command: each of their lines is one of the table."""
    shown = r"```\w*\n\$ clearlane (?:run|sweep) experiments/([a-z0-9-]+)\.toml\n(.*?)```"
    blocks = [
        (page, *block)
        for page in PAGES
        for block in re.findall(shown, page.read_text(), flags=re.DOTALL)
    ]
    assert blocks
    for page, name, block in blocks:
        printed = (GOLDEN / f"{name}.txt").read_text().splitlines()
        missing = [line for line in block.splitlines() if line not in printed]
        assert not missing, (page, name, missing)
