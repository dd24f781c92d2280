"""The tutorial: every command in it runs, and prints what stands there."""

from __future__ import annotations

import re
import shlex
import shutil

from conftest import ROOT, Clearlane

TEXT = (ROOT / "docs/tutorial.md").read_text()
# What is wrong with the shipped site is found, and is no success.
CODES = {"diagnose": 1}


def test_every_command_prints_what_stands_there(clearlane: Clearlane) -> None:
    shutil.copytree(ROOT / "fixtures/site", clearlane.folder / "site")
    blocks = re.findall(r"```console\n\$ clearlane (.*)\n((?:.*\n)*?)```", TEXT)
    assert len(blocks) >= 5
    said = ""
    for line, shown in blocks:
        words = shlex.split(line)
        done = clearlane(*words, code=CODES.get(words[0], 0))
        assert done.stdout.startswith(shown), f"{line}\n{done.stdout}"
        said += done.stdout
    # Blocks without a command quote what was printed by one, or are commands of other tools.
    every = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
    quoted = [block for kind, block in every if kind == ""]
    lines = [line for block in quoted for line in block.splitlines() if " > " not in line]
    assert lines and all(line in said.splitlines() for line in lines)
