"""A new mechanism is one file and one line, and everything that knows mechanisms knows it then."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from conftest import ROOT
from peers import run_bounded

MECHANISMS = "crates/congestion/src/mechanisms"


def git(tree: Path, *words: str) -> str:
    """Runs git in a tree."""
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
    command = ["git", *identity, *words]
    done = subprocess.run(
        command, cwd=tree, check=True, timeout=240, capture_output=True, text=True
    )
    return done.stdout


def copied(tree: Path) -> Path:
    """The files git knows of, with an index of their own."""
    tree.mkdir()
    listed = git(ROOT, "ls-files", "-z").split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((ROOT / name).read_bytes())
    git(tree, "init", "--quiet")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "as it is")
    return tree


def test_a_new_mechanism_is_one_file_and_one_line(tmp_path: Path) -> None:
    tree = copied(tmp_path / "tree")
    text = (tree / MECHANISMS / "none.rs").read_text()
    assert text.count('"none"') == 1
    (tree / MECHANISMS / "idle.rs").write_text(text.replace('"none"', '"idle"'))
    registry = tree / MECHANISMS / "mod.rs"
    registry.write_text(registry.read_text().replace("    drb\n", "    drb\n    idle\n"))
    git(tree, "add", "--all")
    stat = git(tree, "diff", "--cached", "--numstat", "HEAD").split()
    lines = str(len(text.splitlines()))
    expected = [lines, "0", f"{MECHANISMS}/idle.rs", "1", "0", f"{MECHANISMS}/mod.rs"]
    assert stat == expected, stat
    # Its own tests and those over the registry run it with the others.
    test = ["cargo", "test", "--quiet", "-p", "clearlane-congestion", "--offline"]
    environment = os.environ | {"CARGO_TARGET_DIR": str(tmp_path / "target")}
    done = run_bounded([*test, "idle"], limit_s=600, env=environment, cwd=tree)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "1 passed" in done.stdout, done.stdout
    done = run_bounded([*test, "--test", "registry"], limit_s=600, env=environment, cwd=tree)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
