"""Fixtures of the tests against real tools: the built binary, simulated subnets, judges."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from peers import HANG_S, Ibsim, OpenSm, missing_tools, run_bounded

ROOT = Path(__file__).resolve().parent.parent
NEEDED = ["ibsim", "opensm", "ibnetdiscover", "dump_fts", "ibdmchk", "chromium", "dot", "stdbuf"]
NEEDED += ["mpirun", "tshark", "ip", "tc", "tcpdump", "mount"]


def pytest_sessionstart() -> None:
    """A tool that is missing fails the run: a skipped test would look like a passed one."""
    if missing := missing_tools(NEEDED):
        pytest.exit(f"missing: {' '.join(missing)}; run scripts/setup test", returncode=3)


@dataclass(frozen=True)
class Clearlane:
    """The built command."""

    binary: Path
    folder: Path

    def __call__(
        self, *arguments: object, code: int = 0, limit_s: float = HANG_S
    ) -> subprocess.CompletedProcess[str]:
        """Runs it in the test's folder; fails unless it ends with `code`."""
        command = [str(self.binary), *map(str, arguments)]
        done = run_bounded(command, limit_s=limit_s, env=os.environ, cwd=self.folder)
        assert done.returncode == code, (
            f"{' '.join(command)}\nended with {done.returncode}, not {code}:\n"
            f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        )
        return done


@pytest.fixture(scope="session")
def binary() -> Path:
    """CLEARLANE_BIN, else target/release/clearlane; neither being there is a failure."""
    path = Path(os.environ.get("CLEARLANE_BIN", ROOT / "target/release/clearlane"))
    if not path.is_file():
        pytest.fail(f"{path} is not there; cargo build --release, or set CLEARLANE_BIN")
    return path.resolve()


@pytest.fixture
def clearlane(binary: Path, tmp_path: Path) -> Clearlane:
    """The built command, run in the test's own folder."""
    return Clearlane(binary, tmp_path)


# Files that take longest. They begin first, so that the workers end at about the same time.
LONGEST = ["test_tutorial.py", "test_traffic.py", "test_signals.py", "test_resume.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the files that take longest first."""
    order = {name: at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(LONGEST)))


@pytest.fixture
def ibsim(tmp_path: Path) -> Callable[[Path], AbstractContextManager[Ibsim]]:
    """`with ibsim(netlist) as subnet:` a simulated subnet in a folder of its own."""
    count = iter(range(1_000))
    return lambda netlist: Ibsim(netlist, tmp_path / f"ibsim-{next(count)}")


@pytest.fixture
def opensm(ibsim: Callable[[Path], AbstractContextManager[Ibsim]]) -> Callable[..., OpenSm]:
    """`opensm(netlist, engine, key=value…)`: boots the netlist, lets OpenSM route it once by the
    engine, and fails if another engine did in the end."""

    def route(
        netlist: Path,
        engine: str,
        *,
        guid2lid: str | None = None,
        **conf: object,
    ) -> OpenSm:
        with ibsim(netlist) as subnet:
            done = subnet.opensm(
                {"routing_engine": engine} | conf, guid2lid=guid2lid
            )
        assert done.engine == engine, f"routed by {done.engine}, not {engine}:\n{done.log}"
        return done

    return route


@pytest.fixture(scope="session")
def site() -> Iterator[Path]:
    """The shipped site."""
    yield ROOT / "fixtures" / "site"


@pytest.fixture
def shared() -> Path:
    """The folder of third parties' files beside the workspace; a skip where it is not."""
    folder = ROOT.parent / "shared"
    if not folder.exists():
        pytest.skip(f"{folder} is not here")
    return folder
