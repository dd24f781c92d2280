"""What the Makefile promises of a site's own files, as it would do it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from conftest import ROOT
from peers import run_bounded

# This run may itself be a child of make, whose flags are not meant for another one.
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}


def commands(target: str, **variables: object) -> list[str]:
    """The commands make would run."""
    words = ["make", "-n", target, *(f"{name}={value}" for name, value in variables.items())]
    done = subprocess.run(
        words, cwd=ROOT, env=ENVIRONMENT, check=True, timeout=120, capture_output=True, text=True
    )
    return [" ".join(line.split()) for line in re.sub(r"\\\n", " ", done.stdout).splitlines()]


def test_the_demo_on_own_files(binary: Path, site: Path, tmp_path: Path) -> None:
    out, fabric, lft = tmp_path / "demo", site / "site.ibnetdiscover-p", site / "opensm-lfts.dump"
    would = commands("demo", FABRIC=fabric, LFT=lft, OUT=out, CLEARLANE=binary)
    run = f"{binary} run experiments/demo-hot-spot.toml --out {out} --force"
    assert f"{run} --fabric '{fabric}' --lft '{lft}'" in would, would
    # All but what builds the binary, which is here.
    script = "\n".join(line for line in would if not line.startswith(("scripts/setup", "cargo")))
    done = run_bounded(
        ["bash", "-euo", "pipefail", "-c", script], limit_s=300, env=ENVIRONMENT, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = f"file://{out}/report.html"
    said = "as-is: everybody else: 29.8 % of"
    for text in ["279 hosts, 30 switches", "verdict sane", said, report]:
        assert text in " ".join(done.stdout.split()), f"{text} is not in\n{done.stdout}"
    assert str(fabric) in (out / "summary.json").read_text()


def test_the_demo_on_a_fabric_without_tables(binary: Path, site: Path, tmp_path: Path) -> None:
    out, fabric = tmp_path / "demo", site / "site.ibnetdiscover-p"
    would = commands("demo", FABRIC=fabric, OUT=out, CLEARLANE=binary)
    script = "\n".join(line for line in would if not line.startswith(("scripts/setup", "cargo")))
    done = run_bounded(
        ["bash", "-euo", "pipefail", "-c", script], limit_s=300, env=ENVIRONMENT, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for text in ["no LFT=: routed anew", "two-lanes", f"file://{out}/report.html"]:
        assert text in done.stdout, f"{text} is not in\n{done.stdout}"
