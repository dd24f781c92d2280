"""What the Makefile promises of a site's own files, as it would do it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT
from peers import HANG_S, run_bounded

# This run may itself be a child of make, whose flags are not meant for another one.
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}


def commands(target: str, **variables: object) -> list[str]:
    """The commands make would run."""
    words = ["make", "-n", target, *(f"{name}={value}" for name, value in variables.items())]
    done = subprocess.run(
        words, cwd=ROOT, env=ENVIRONMENT, check=True, timeout=HANG_S, capture_output=True, text=True
    )
    return [" ".join(line.split()) for line in re.sub(r"\\\n", " ", done.stdout).splitlines()]


def demo(binary: Path, **variables: object) -> str:
    """What `make demo` prints, all but what builds the binary, which is here."""
    would = commands("demo", CLEARLANE=binary, **variables)
    script = "\n".join(line for line in would if not line.startswith(("scripts/setup", "cargo")))
    done = run_bounded(
        ["bash", "-euo", "pipefail", "-c", script], env=ENVIRONMENT, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_demo_asks_for_what_make_was_told(site: Path) -> None:
    """By the words alone; `make test-long` runs it."""
    fabric, lft = site / "site.ibnetdiscover-p", site / "opensm-lfts.dump"
    whole = commands("demo", FABRIC=fabric, LFT=lft, HOT="storage01 storage02", OUT="out")
    words = next(line for line in whole if " diagnose " in line)
    asked = f"diagnose '{fabric}' --lft '{lft}' --hot 'storage01' --hot 'storage02' --output out"
    assert asked in words, words
    bare = next(line for line in commands("demo", FABRIC=fabric) if " diagnose " in line)
    assert f"diagnose '{fabric}' --output" in bare, bare


def make_test(target: Path, stages: str) -> subprocess.CompletedProcess[str]:
    """`make test` with some stages and another target folder."""
    words = ["make", "test", f"STAGES={stages}", f"CARGO_TARGET_DIR={target}"]
    return run_bounded(words, env=ENVIRONMENT, cwd=ROOT)


def test_every_stage_is_run_whatever_fails_and_the_last_line_says_which(tmp_path: Path) -> None:
    done = make_test(tmp_path, "none other")
    assert done.returncode == 2, done.stdout
    for name in ["none", "other"]:
        assert f"== {name}: failed with 2" in done.stdout, done.stdout
    assert done.stderr.splitlines()[-1].endswith("failed: none other.  Stop."), done.stderr


def test_stages_that_cannot_begin_are_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = make_test(file, "none")
    assert done.returncode == 2, done.stdout


@pytest.mark.long
def test_the_demo_on_own_files(binary: Path, site: Path, tmp_path: Path) -> None:
    out, fabric, lft = tmp_path / "demo", site / "site.ibnetdiscover-p", site / "opensm-lfts.dump"
    said = demo(binary, FABRIC=fabric, LFT=lft, HOT="storage01", OUT=out)
    words = " ".join(said.split())
    for text in ["3 cables are missing", "storage01 is hot", f"report: file://{out}/report.html"]:
        assert text in words, f"{text} is not in\n{said}"
    summary = json.loads((out / "summary.json").read_text())
    assert str(fabric) in summary["command"]
    assert [line["label"] for line in summary["verdict"]["lines"]][:2] == ["fault", "bottleneck"]


@pytest.mark.long
def test_the_demo_on_a_fabric_without_tables(binary: Path, site: Path, tmp_path: Path) -> None:
    out, fabric = tmp_path / "demo", site / "site.ibnetdiscover-p"
    said = " ".join(demo(binary, FABRIC=fabric, OUT=out).split())
    assert "supposed that storage04 is hot (its name says that many use it)" in said
    assert "simulated with tables of engine" in said and f"file://{out}/report.html" in said
