"""Memory that is refused or nearly full ends any command in one line with exit code 5, and nothing
half-written stays: under `ulimit -v`, and in control groups, where the kernel would kill."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import Clearlane
from peers import HANG_S

MIB = 1 << 20
REFUSED = 5
"""Exit code of a machine that refuses."""

TRAFFIC = """
[[traffic]]
name = "all"
class = "background"
pattern = {pattern}
load = {load}
size = "{size}"
"""
HEAD = """schema = 1
name = "{name}"
fabric = {{ build = "{build}" }}
subnet = {{ {subnet} }}
sim = {{ preset = "qdr" }}
run = {{ duration = "{duration}" }}
"""


def experiment(
    name: str,
    build: str,
    subnet: str,
    *,
    duration: str = "10 us",
    pattern: str = '{ kind = "uniform" }',
    load: float = 0.3,
    size: str = "2 KiB",
) -> str:
    """An experiment file."""
    head = HEAD.format(name=name, build=build, subnet=subnet, duration=duration)
    return head + TRAFFIC.format(pattern=pattern, load=load, size=size)


EXPERIMENTS = {
    "torus": experiment("torus", "torus:32x32x32", 'forwarding = "dimension-order"'),
    "tree": experiment("tree", "fat-tree:11664", 'engine = "fat-tree"'),
    # More is offered than delivered: the list of messages grows without end.
    "incast": experiment(
        "incast",
        "star:200",
        'engine = "min-hop"',
        duration="100 s",
        pattern='{ kind = "incast", to = 0 }',
        load=4.0,
        size="1 B",
    ),
}


def prepared(folder: Path) -> list[str]:
    """Writes the experiments. Returns the names of the files."""
    for name, text in EXPERIMENTS.items():
        (folder / f"{name}.toml").write_text(text)
    return sorted(f"{name}.toml" for name in EXPERIMENTS)


GROWING = [
    ["run", "incast.toml", "--out", "out", "--jobs", "1"],
    ["sweep", "incast.toml", "--over", "traffic.load=3,4", "--out", "out"],
    ["run", "torus.toml", "--out", "out"],
    ["fabric", "build", "hypercube:19", "-o", "cube.topo"],
    ["fabric", "build", "torus:160x160x40", "-o", "torus.dot"],
    ["check", "torus:200x200", "--engine", "dor", "--lanes", "8"],
    ["route", "fat-tree:11664", "--engine", "fat-tree", "-o", "tables"],
    ["fabric", "show", "hypercube:18", "--all", "--json"],
]
"""Calls that need more than any limit here, or end before they meet one."""
SOON = [command for command in GROWING if command[0] != "route"]
"""Those of them that take seconds."""


def assert_ended_well(
    done: subprocess.CompletedProcess[str], folder: Path, there: list[str]
) -> bool:
    """Done, or refused in one line with nothing left. Returns whether it was refused."""
    said = f"{done.args} ended with {done.returncode}:\n{done.stdout[-500:]}\n{done.stderr[-2000:]}"
    lines = done.stderr.splitlines()
    if done.returncode != REFUSED:
        assert done.returncode in (0, 1, 2), said
        return False
    assert not done.stdout, said
    # Lines of progress of a long call stand before it.
    faults = [line for line in lines if line.startswith("clearlane: ")]
    assert len(faults) == 1 and lines[-1] == faults[0], said
    told = ["full", "needed", "a thread", "threads", "SIGABRT"]
    assert any(word in faults[0] for word in told), said
    assert "fault of clearlane" not in faults[0] and "backtrace" not in done.stderr, said
    assert sorted(path.name for path in folder.iterdir()) == there, said
    return True


def cleared(folder: Path, there: list[str]) -> None:
    """Takes away what a call that was done has written."""
    for path in folder.iterdir():
        if path.name not in there:
            subprocess.run(["rm", "-rf", str(path)], check=True)


FEW_KB = [58_000, 75_000]
"""The first allocations fail at the one, and later ones at the other."""
MANY_KB = range(50_000, 900_001, 25_000)
FIRST_KB = range(50_000, 62_000, 97)
"""First threads: the C library aborts where one begins without memory for its first block."""
ADDRESSED = [
    ["run", "torus.toml", "--out", "out"],
    ["run", "tree.toml", "--out", "deeper/out", "--threads", "2"],
    ["route", "fat-tree:11664", "--engine", "fat-tree", "-o", "tables"],
    ["fabric", "build", "hypercube:19", "-o", "cube.topo"],
    ["check", "fat-tree:11664", "--engine", "fat-tree"],
    ["deploy", "fat-tree:11664", "--engine", "fat-tree", "-o", "files"],
]


@pytest.mark.parametrize("command", ADDRESSED, ids=lambda command: command[0])
@pytest.mark.parametrize(
    "limits_kb",
    [
        pytest.param(FEW_KB, id="few"),
        pytest.param(MANY_KB, id="many", marks=pytest.mark.long),
        pytest.param(FIRST_KB, id="first", marks=pytest.mark.long),
    ],
)
def test_addresses_that_are_refused_end_a_command_in_one_line(
    command: list[str], limits_kb: Iterable[int], clearlane: Clearlane
) -> None:
    there = prepared(clearlane.folder)
    refused = 0
    for limit_kb in limits_kb:
        script = f'ulimit -v {limit_kb}; exec "$0" "$@"'
        called = ["sh", "-c", script, str(clearlane.binary), *command]
        done = subprocess.run(
            called,
            cwd=clearlane.folder,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        refused += assert_ended_well(done, clearlane.folder, there)
        cleared(clearlane.folder, there)
    assert refused, "no limit was met"


def test_an_abort_ends_a_command_in_one_line(clearlane: Clearlane) -> None:
    there = prepared(clearlane.folder)
    words = ["run", "incast.toml", "--out", "out", "--jobs", "1"]
    running = subprocess.Popen(
        [str(clearlane.binary), *words],
        cwd=clearlane.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + HANG_S
    while not (clearlane.folder / "out").exists():
        assert running.poll() is None and time.monotonic() < until
        time.sleep(0.01)
    running.send_signal(signal.SIGABRT)
    out, err = running.communicate(timeout=HANG_S)
    done = subprocess.CompletedProcess(words, running.returncode, out, err)
    assert assert_ended_well(done, clearlane.folder, there), (running.returncode, out, err)
    assert "SIGABRT" in err


@dataclass(frozen=True)
class ControlGroup:
    """A control group with a limit of memory."""

    folder: Path
    limit: str
    """The file of its limit."""

    def used_bytes(self) -> int:
        """Bytes that are charged to it."""
        used = {"memory.max": "memory.current"}.get(self.limit, "memory.usage_in_bytes")
        return int((self.folder / used).read_text())

    def call(
        self, binary: Path, command: list[str], limit_bytes: int, cwd: Path
    ) -> subprocess.CompletedProcess[str]:
        """Calls it as the only process of the group."""
        (self.folder / self.limit).write_text(str(limit_bytes))
        script = f'echo $$ > {self.folder}/cgroup.procs && exec "$0" "$@"'
        return subprocess.run(
            ["sh", "-c", script, str(binary), *command],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )


def mounted(kind: str) -> Path | None:
    """Folder of a hierarchy that knows memory; `None` if none is mounted."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place, _, rest = line.partition(" - ")
        words = rest.split()
        folder = Path(place.split()[4])
        if words[0] == "cgroup" == kind and "memory" in words[2].split(","):
            return folder
        if words[0] == "cgroup2" == kind:
            known = (folder / "cgroup.controllers").read_text().split()
            return folder if "memory" in known else None
    return None


def gives_memory(top: Path) -> bool:
    """Whether groups below a hierarchy's top have limits of memory; version 1 always gives them."""
    control = top / "cgroup.subtree_control"
    return not control.exists() or "memory" in control.read_text().split()


def opened(kind: str, top: Path, group: Path) -> ControlGroup | str:
    """Makes a group in the hierarchy at `top`. Returns what refused if it cannot be made."""
    limit = "memory.max" if kind == "cgroup2" else "memory.limit_in_bytes"
    try:
        group.mkdir()
        if kind == "cgroup2":
            (top / "cgroup.subtree_control").write_text("+memory")
        # More than any machine has. It is tried whether the limit may be changed.
        (group / limit).write_text(str(1 << 62))
    except OSError as error:
        return f"{kind}: {error}"
    return ControlGroup(group, limit)


@contextmanager
def made(kind: str, folder: Path) -> Iterator[ControlGroup | str]:
    """Makes a group of a version, or says why the machine has none. A hierarchy of version 1 that
    is not mounted is mounted in `folder`."""
    top, own, why = mounted(kind), False, f"{kind}: no hierarchy with memory is mounted"
    was_given = top is not None and gives_memory(top)
    if top is None and kind == "cgroup":
        words = ["mount", "-t", "cgroup", "-o", "memory", "none", str(folder)]
        mount = subprocess.run(words, capture_output=True, text=True, check=False)
        own = mount.returncode == 0
        top, why = folder if own else None, f"{why}: {mount.stderr.strip()}"
    if top is None:
        yield why
        return
    group = top / f"clearlane-test-{uuid.uuid4().hex}"
    try:
        yield opened(kind, top, group)
    finally:
        if group.exists():
            group.rmdir()
        if kind == "cgroup2" and not was_given:
            (top / "cgroup.subtree_control").write_text("-memory")
        if own:
            subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ControlGroup]]:
    """A group of each version that the machine has, 1 or 2. This needs root, and a memory
    controller that root may change, which a container may not have. A machine without fails."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("groups")
        tried = [stack.enter_context(made(kind, folder)) for kind in ["cgroup", "cgroup2"]]
        groups = [group for group in tried if isinstance(group, ControlGroup)]
        missing = "; ".join(why for why in tried if isinstance(why, str))
        assert groups, (
            f"no control group with a limit of memory can be made, as user {os.geteuid()}: "
            f"{missing}. Be root on a machine whose memory controller may be changed"
        )
        yield groups


@pytest.mark.parametrize(
    ("limit_mib", "commands"),
    [
        pytest.param(300, SOON, id="300-soon"),
        pytest.param(300, GROWING, id="300", marks=pytest.mark.long),
        pytest.param(1024, GROWING, id="1024", marks=pytest.mark.long),
    ],
)
def test_no_command_is_killed_in_a_control_group(
    limit_mib: int, commands: list[list[str]], groups: list[ControlGroup], clearlane: Clearlane
) -> None:
    there = prepared(clearlane.folder)
    for group in groups:
        refused = 0
        for command in commands:
            done = group.call(clearlane.binary, command, limit_mib * MIB, clearlane.folder)
            refused += assert_ended_well(done, clearlane.folder, there)
            cleared(clearlane.folder, there)
        # The incast grows without end, whatever the limit.
        assert refused >= 2, f"no limit of {group.limit} was met"


def test_pages_of_files_are_not_taken_for_memory(
    groups: list[ControlGroup], clearlane: Clearlane
) -> None:
    """A group filled with pages of a file that was read: they go when memory is needed."""
    prepared(clearlane.folder)
    large = clearlane.folder / "large"
    with large.open("wb") as file:
        for _ in range(400):
            file.write(bytes(MIB))
        file.flush()
        os.fsync(file.fileno())
    limit = 300 * MIB
    for group in groups:
        with large.open("rb") as file:
            # Pages that are there already are not charged to the group that reads them.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        read = group.call(Path("cksum"), [str(large)], limit, clearlane.folder)
        assert read.returncode == 0
        assert group.used_bytes() > limit * 3 // 4, "the group is not filled"
        check = ["check", "fat-tree:648", "--engine", "fat-tree"]
        done = group.call(clearlane.binary, check, limit, clearlane.folder)
        assert done.returncode == 0, done.stderr
