"""What is new is one file and its entries, and everything that knows its kind knows it then.

`make test-long` runs these tests, because the last of them compiles the engine anew.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT
from peers import HANG_S, run_bounded

MECHANISMS = "crates/congestion/src/mechanisms"
PROGRAMS = "crates/workload/src/programs"
PATTERNS = "crates/workload/src/patterns"
MEASURES = "crates/lab/src/measure/kinds"
SIM = "crates/sim/src"
ROUNDS = 20
pytestmark = [pytest.mark.long, pytest.mark.alone]
EXPERIMENT = f"""schema = 1
name = "new"
run = {{ duration = "10 ms", ends = "programs" }}
fabric = {{ build = "star:2" }}
subnet = {{ engine = "min-hop" }}
sim = {{ preset = "qdr" }}
[[traffic]]
name = "calls"
class = "background"
program = {{ kind = "echo", size = "8 B", rounds = {ROUNDS} }}
[[variant]]
name = "as it was"
[[variant]]
name = "thoughtful"
sim = {{ thought = "3 us" }}
"""

# An axis of an experiment is its own lines and nothing else.
AXIS = """schema = 1
name = "both"
run = { duration = "400 us" }
fabric = { build = "star:4" }
subnet = { engine = "min-hop" }
sim = { preset = "qdr" }
[[traffic]]
name = "all"
class = "background"
pattern = { kind = "skip", by = 1 }
load = 0.4
size = "2 KiB"
[[axis]]
settings = [{ name = "light" }, { name = "heavy", traffic = [{ name = "all", load = 0.7 }] }]
[[published]]
each = "{how}"
name = "evenness, {how}"
measure = { kind = "evenness" }
"""


def git(tree: Path, *words: str) -> str:
    """Runs git in a tree."""
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
    command = ["git", *identity, *words]
    done = subprocess.run(
        command, cwd=tree, check=True, timeout=HANG_S, capture_output=True, text=True
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
    test = ["test", "--quiet", "-p", "clearlane-congestion"]
    assert "1 passed" in cargo(tree, *test, "idle")
    cargo(tree, *test, "--test", "it", "registry::")


def changed(tree: Path) -> dict[str, tuple[int, int]]:
    """Files that differ from the last commit, with the lines that came and went."""
    git(tree, "add", "--all")
    lines = git(tree, "diff", "--cached", "--numstat", "HEAD").splitlines()
    parts = [line.split("\t") for line in lines]
    return {name: (int(came), int(went)) for came, went, name in parts}


def put(path: Path, before: str, line: str) -> None:
    """Puts lines before the first place where a text stands."""
    text = path.read_text()
    assert before in text, f"{path} has no {before!r}"
    path.write_text(text.replace(before, line + before, 1))


def add_program(tree: Path) -> None:
    """A kind of program: `echo`, which is a ping-pong by another name."""
    text = (tree / PROGRAMS / "ping_pong.rs").read_text()
    # Its name, and that in its example.
    assert text.count('"ping-pong') == 2
    (tree / PROGRAMS / "echo.rs").write_text(text.replace('"ping-pong', '"echo'))
    registry = tree / PROGRAMS / "mod.rs"
    put(registry, "    ping_pong\n", "    echo\n")


def add_pattern(tree: Path) -> None:
    """A pattern: `skip`, which is a shift by another name."""
    text = (tree / PATTERNS / "shift.rs").read_text()
    assert text.count('"shift"') == 1
    (tree / PATTERNS / "skip.rs").write_text(text.replace('"shift"', '"skip"'))
    put(tree / PATTERNS / "mod.rs", "    shift\n", "    skip\n")


def add_measure(tree: Path) -> None:
    """A measure: `evenness`, which is Jain's index by another name."""
    text = (tree / MEASURES / "jain.rs").read_text()
    assert text.count('"jain"') == 1
    (tree / MEASURES / "evenness.rs").write_text(text.replace('"jain"', '"evenness"'))
    put(tree / MEASURES / "mod.rs", "    jain\n", "    evenness\n")


def add_key(tree: Path) -> None:
    """A key of [sim]: `thought`, which a sender takes beside its overhead."""
    place = tree / SIM / "parameters.rs"
    field = "    /// Thought before a message.\n    pub thought: Picoseconds,\n"
    put(place, "    /// How fast a packet leaves its input buffer", field)
    entry = (
        '    Key {\n        name: "thought",\n        summary: "thought before a message",\n'
        '        source: "assumed: none",\n'
        "        access: Access::Time(ranges::DELAY, at!(thought)),\n    },\n"
    )
    put(place, '    Key {\n        name: "crossbar_speedup",', entry)
    default = "        thought: Picoseconds(0),\n"
    put(tree / SIM / "preset.rs", "        crossbar_speedup: 100,", default)
    text = place.read_text()
    before = "send_overhead: self.send_overhead.0,"
    assert text.count(before) == 1
    after = "send_overhead: self.send_overhead.0 + self.thought.0,"
    place.write_text(text.replace(before, after))


def target() -> Path:
    """Where copied trees are built. What is not ours is the same there and not built again."""
    ours = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
    seam, debug = ours / "seam", ours / "debug"
    if seam.exists() or not debug.exists():
        return seam
    for folder in [".fingerprint", "build"]:
        own = shutil.ignore_patterns("clearlane*")
        shutil.copytree(debug / folder, seam / "debug" / folder, ignore=own)
    (seam / "debug/deps").mkdir()
    for library in (debug / "deps").glob("lib*"):
        if not library.name.startswith("libclearlane"):
            os.link(library, seam / "debug/deps" / library.name)
    return seam


def cargo(tree: Path, *words: str) -> str:
    """What cargo says in a copied tree."""
    environment = os.environ | {"CARGO_TARGET_DIR": str(target())}
    command = ["cargo", words[0], "--offline", *words[1:]]
    done = run_bounded(command, env=environment, cwd=tree)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def with_page(tree: Path) -> Path:
    """The tree with a report page that is newer than what it is made from: it is not made again."""
    page = ROOT / "web/dist/report.html"
    (tree / "web/dist").mkdir()
    shutil.copyfile(page, tree / "web/dist/report.html")
    return tree


def test_a_new_program_pattern_measure_and_key_of_devices(tmp_path: Path) -> None:
    tree = copied(tmp_path / "tree")
    add_program(tree)
    lines = len((tree / PROGRAMS / "echo.rs").read_text().splitlines())
    expected = {f"{PROGRAMS}/echo.rs": (lines, 0), f"{PROGRAMS}/mod.rs": (1, 0)}
    assert changed(tree) == expected
    git(tree, "commit", "--quiet", "--message", "a program")
    for add, folder, name in [(add_pattern, PATTERNS, "skip"), (add_measure, MEASURES, "evenness")]:
        add(tree)
        lines = len((tree / folder / f"{name}.rs").read_text().splitlines())
        expected = {f"{folder}/{name}.rs": (lines, 0), f"{folder}/mod.rs": (1, 0)}
        assert changed(tree) == expected
        git(tree, "commit", "--quiet", "--message", name)
    # Its own tests and those over the registry run it with the others.
    test = ["test", "--quiet", "-p", "clearlane-workload", "--lib", "--"]
    cargo(tree, *test, "programs::", "patterns::")
    add_key(tree)
    # Its field, its entry and the line that uses it; its default.
    expected = {
        f"{SIM}/parameters.rs": (9, 1),
        f"{SIM}/preset.rs": (1, 0),
    }
    assert changed(tree) == expected
    cargo(with_page(tree), "check", "--quiet", "-p", "clearlane")


def test_what_is_new_is_listed_explained_and_run(tmp_path: Path) -> None:
    tree = copied(tmp_path / "tree")
    for add in [add_program, add_pattern, add_measure, add_key]:
        add(tree)
    cargo(with_page(tree), "build", "--quiet", "-p", "clearlane")
    binary = target() / "debug/clearlane"

    def say(*words: str) -> str:
        command = [str(binary), *words]
        done = run_bounded(command, env=os.environ, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    assert "echo" in say("list", "programs")
    assert "two ranks answer each other" in say("explain", "echo")
    assert "thought before a message" in say("explain", "sim.thought")
    say("docs", "--output", "reference")
    assert "\n## echo\n" in (tmp_path / "reference/programs.md").read_text()
    assert "| `thought` |" in (tmp_path / "reference/keys.md").read_text()
    (tmp_path / "new.toml").write_text(EXPERIMENT)
    summary = json.loads(say("run", "new.toml", "--out", "out", "--json"))
    runs = [variant["runs"][0] for variant in summary["variants"]]
    was, thoughtful = (run["completion_us"]["calls"] for run in runs)
    # Each of two ranks thinks before each of its messages.
    assert abs(thoughtful - was - 2 * ROUNDS * 3) < 1e-6, (was, thoughtful)
    assert "evenness" in say("list", "measures") and "skip" in say("list", "patterns")
    (tmp_path / "both.toml").write_text(AXIS)
    summary = json.loads(say("run", "both.toml", "--out", "both", "--json"))
    rows = {row["name"]: row["obtained"]["mean"] for row in summary["published"]}
    assert rows.keys() == {"evenness, light", "evenness, heavy"}
    assert all(0.9 < even <= 1.0 for even in rows.values()), rows
    summary = json.loads(say("run", "new.toml", "--out", "out", "--force", "--json"))
    named = {p["name"]: p for p in summary["variants"][1]["parameters"]}
    assert named["thought"]["value"] == "3 us", named["thought"]
