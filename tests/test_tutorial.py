"""The tutorial and the recipes: every command in them runs, and prints what stands there."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, Clearlane

# What is wrong with the shipped site is found, and is no success.
CODES = {"diagnose": 1}


def prepared(folder: Path) -> None:
    """The shipped site, and what the recipes take for somebody's own files."""
    site = folder / "site"
    shutil.copytree(ROOT / "fixtures/site", site)
    fabric = (site / "site.ibnetdiscover").read_bytes()
    (site / "site.ibnetdiscover.gz").write_bytes(gzip.compress(fabric))
    (site / "names").write_text('0x02c1ea517e0106b0 "gpu node 100"\n')
    demo = (ROOT / "experiments/demo-hot-spot.toml").read_text().replace("../fixtures/site/", "")
    (site / "demo-hot-spot.toml").write_text(demo)
    one = demo.split("[[variant]]")[0].replace("seeds = 3", "seeds = 1")
    (site / "one.toml").write_text(one)


@pytest.mark.parametrize("name", ["tutorial", "recipes"])
def test_every_command_prints_what_stands_there(clearlane: Clearlane, name: str) -> None:
    prepared(clearlane.folder)
    clearlane("fabric", "build", "leaf-spine:leaves=4,hosts=4,spines=2", "-o", "site/other.topo")
    text = (ROOT / f"docs/{name}.md").read_text()
    blocks = re.findall(r"```console\n\$ clearlane (.*)\n((?:.*\n)*?)```", text)
    assert len(blocks) >= 5
    said = ""
    for line, shown in blocks:
        words = shlex.split(line)
        done = clearlane(*words, code=CODES.get(words[0], 0))
        assert done.stdout.startswith(shown), f"{line}\n{done.stdout}"
        said += done.stdout
    # Blocks without a command quote what was printed by one, or are commands of other tools.
    every = re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    quoted = [block for kind, block in every if kind == ""]
    is_other = re.compile(r" > |^0x")
    lines = [line for block in quoted for line in block.splitlines() if not is_other.search(line)]
    assert lines or name == "recipes"
    assert all(line in said.splitlines() for line in lines)
