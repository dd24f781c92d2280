"""The tutorial and the recipes: every command in them runs, and prints what stands there."""

from __future__ import annotations

import os
import re
import shlex

import pytest
from conftest import ROOT, Clearlane
from peers import run_bounded

# What is wrong with the shipped site is found, and is no success.
CODES = {"diagnose": 1}
# This command simulates for half a minute. Only `make test-long` runs it, and compares the blocks
# that quote its output.
LONG = "diagnose site/site.ibnetdiscover --lft site/site.dump_fts --hot storage01"


def prepared(clearlane: Clearlane) -> None:
    """The shipped site, and what the recipes prepare, by their own commands."""
    folder = clearlane.folder
    for name in ["fixtures", "experiments"]:
        (folder / name).symlink_to(ROOT / name)
    text = (ROOT / "docs/recipes.md").read_text()
    script = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)[0]
    path = f"{clearlane.binary.parent}:{os.environ['PATH']}"
    done = run_bounded(
        ["bash", "-euo", "pipefail", "-c", script],
        env=os.environ | {"PATH": path},
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("tutorial", False),
        pytest.param("tutorial", True, marks=pytest.mark.long),
        ("recipes", True),
    ],
)
def test_every_command_prints_what_stands_there(
    clearlane: Clearlane, name: str, whole: bool
) -> None:
    prepared(clearlane)
    text = (ROOT / f"docs/{name}.md").read_text()
    blocks = re.findall(r"```console\n\$ clearlane (.*)\n((?:.*\n)*?)```", text)
    assert len(blocks) >= 5
    assert name == "recipes" or LONG in [line for line, _ in blocks]
    said = ""
    for line, shown in blocks:
        if line == LONG and not whole:
            continue
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
    if whole:
        assert all(line in said.splitlines() for line in lines)
