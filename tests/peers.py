"""The real tools, run bounded and cleaned up: ibsim, OpenSM, infiniband-diags, ibdmchk.

What it is: one class or function per tool. ibsim and OpenSM run in a folder of their own; the
clients of one ibsim share a folder in memory. Every ibsim has a socket name of its own. Every
process has a time limit and is gone when its block ends. A client of ibsim whose
simulator died waits for ever, so nothing here starts one without a limit.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

UMAD2SIM = Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")
"""The library that turns management datagrams into messages to ibsim (Debian: ibsim-utils)."""

# OpenSM and infiniband-diags live where only root's path looks.
os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"

IBSIM_LIMITS = ["-N", "20000", "-S", "4000", "-P", "300000"]
"""Nodes, switches and ports ibsim may hold; its defaults stop at 2048, 256 and 13312."""

HANG_S = 900
"""Seconds after which a command hangs, however busy the machine is."""

MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
"""Where clients of ibsim work. Each makes and removes hundreds of files, which keeps a disk's file
system busy for longer than the question lasts. `None` is the folder of temporary files."""

QUESTIONS_AT_ONCE = 4
"""Clients that ask at the same time: each waits nearly all of its time. ibsim takes ten."""


class PeerError(RuntimeError):
    """A real tool did not do what was asked; the message holds what it printed."""


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a process group. OpenSM ignores SIGTERM while an engine computes, hence SIGKILL."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            pass
        try:
            process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            continue


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a process group. It may have ended, and `communicate` may have seen that."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run_bounded(
    command: list[str], *, limit_s: float = HANG_S, env: Mapping[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process group of its own; past its limit the whole group is killed."""
    process = subprocess.Popen(
        command,
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        out, err = process.communicate()
        tail = (out + err)[-2000:].decode(errors="replace")
        raise PeerError(f"{' '.join(command)} was not done after {limit_s} s:\n{tail}") from None
    except KeyboardInterrupt:
        # Ctrl-C does not reach a group of its own.
        _kill(process)
        process.wait()
        raise
    return subprocess.CompletedProcess(
        command, process.returncode, out.decode(errors="replace"), err.decode(errors="replace")
    )


def wait_for_work(process: subprocess.Popen[str], seconds: float) -> None:
    """Waits until a process has had so much CPU time: how far it is, however busy the machine."""
    limit = time.monotonic() + 60
    while (cpu_s(process.pid) or 0) < seconds:
        if process.poll() is not None or time.monotonic() > limit:
            raise PeerError(f"{process.args} did not work for {seconds} s")
        time.sleep(0.02)


def cpu_s(pid: int) -> float | None:
    """CPU seconds of a process so far, in itself and in the kernel; `None` if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    ticks = int(fields[11]) + int(fields[12])
    return None if fields[0] == "Z" else ticks / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class OpenSm:
    """What one run of OpenSM left behind."""

    folder: Path
    """Holds opensm.fdbs, opensm-lfts.dump, opensm-subnet.lst, opensm.mcfdbs, opensm-sl2vl.dump
    (with QoS) and cache/guid2lid."""
    log: str
    """The log."""
    printed: str
    """What it said on stdout: there, and not in the log, is what it thinks of its configuration."""

    @property
    def engine(self) -> str:
        """The engine that really routed: OpenSM falls back to minhop with no more than a line."""
        said = r"osm_ucast_mgr_process: (\S+) tables configured on all switches"
        found = re.findall(said, self.log)
        if not found:
            raise PeerError(f"no engine routed the fabric; the log ends:\n{self.log[-1500:]}")
        return found[-1]


class Ibsim:
    """A simulated subnet, up from `with` to the end of the block."""

    def __init__(self, netlist: Path, folder: Path, *, console: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.console = console
        self.netlist = netlist.resolve()
        self.folder = folder.resolve()
        self.env = dict(os.environ)
        # Part of an abstract socket's name: two runs with the same one would talk to each other.
        self.env["IBSIM_SOCKNAME"] = f"clearlane-{uuid.uuid4().hex[:12]}"
        self._memory: tempfile.TemporaryDirectory[str] | None = None
        self.preload: list[str] = []
        """Libraries that OpenSM is started with before all others."""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Ibsim:
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self) -> None:
        self._memory = tempfile.TemporaryDirectory(dir=MEMORY)
        out = self.folder / "ibsim.out"
        quiet = [] if self.console else ["-n"]
        with out.open("wb") as sink:
            self._process = subprocess.Popen(
                ["ibsim", "-s", *quiet, *IBSIM_LIMITS, str(self.netlist)],
                env=self.env,
                cwd=self.folder,
                stdin=subprocess.PIPE if self.console else subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + 30
        while "Network simulator ready" not in (text := self.printed()):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise PeerError(f"ibsim did not take {self.netlist}:\n{text[-2000:]}")
            time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            _stop(self._process)
        if self._memory is not None:
            self._memory.cleanup()

    def printed(self) -> str:
        """Everything ibsim has printed so far."""
        return (self.folder / "ibsim.out").read_text(errors="replace")

    def unlink(self, node: str, port: int) -> None:
        """Pulls the cable out of a port of a node such as `S-0ac1ea5100000000`; needs `console`."""
        self._tell(f'Unlink "{node}"[{port}]')

    def relink(self, node: str, port: int) -> None:
        """Puts a cable back that was pulled out."""
        self._tell(f'ReLink "{node}"[{port}]')

    def _tell(self, line: str) -> None:
        assert self._process is not None and self._process.stdin is not None, "no console"
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def client(
        self, command: list[str], *, limit_s: float = HANG_S, attach: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a tool of infiniband-diags on the subnet. `attach` is the netlist's id of the node
        it sits on, such as `H-0000000000000001`; the file's first node where not given."""
        env = self.env | {"LD_PRELOAD": str(UMAD2SIM)}
        if attach is not None:
            env["SIM_HOST"] = attach
        assert self._memory is not None, "ibsim is not up"
        return run_bounded(command, limit_s=limit_s, env=env, cwd=Path(self._memory.name))

    def service_levels(self, paths: list[tuple[int, int]]) -> list[int]:
        """The SL of the PathRecord that a running OpenSM answers with, for each SLID and DLID."""

        def asked(path: tuple[int, int]) -> int:
            slid, dlid = path
            done = self.client(["saquery", "PR", "--src-to-dst", f"{slid}:{dlid}"])
            found = re.search(r"\bsl\.+0x([0-9A-Fa-f]+)", done.stdout)
            if not found:
                raise PeerError(f"no PathRecord for {slid} to {dlid}: {done.stdout}{done.stderr}")
            return int(found.group(1), 16)

        with ThreadPoolExecutor(QUESTIONS_AT_ONCE) as pool:
            return list(pool.map(asked, paths))

    def opensm(
        self,
        conf: Mapping[str, object],
        *,
        name: str = "opensm",
        guid2lid: str | None = None,
        stanza: str = "",
        limit_s: float = HANG_S,
        attach: str | None = None,
    ) -> OpenSm:
        """Lets OpenSM discover, route and program the subnet once. `conf` is opensm.conf's keys,
        `stanza` a text below them; `guid2lid` the LIDs it is to keep, as its cache file says it."""
        prepared = self._prepare(conf, name, guid2lid, stanza, attach)
        folder, log = prepared.folder, prepared.log
        command, env = [*prepared.command, "-o"], prepared.env
        done = run_bounded(command, limit_s=limit_s, env=env, cwd=folder)
        text = log.read_text(errors="replace") if log.exists() else ""
        if done.returncode != 0 or "SUBNET UP" not in text:
            raise PeerError(f"opensm ended with {done.returncode}:\n{text[-2000:]}{done.stderr}")
        return OpenSm(folder, text, done.stdout)

    def running_opensm(
        self,
        conf: Mapping[str, object],
        *,
        name: str = "opensm",
        guid2lid: str | None = None,
        attach: str | None = None,
    ) -> RunningOpenSm:
        """`with subnet.running_opensm(conf) as opensm:` an OpenSM that stays, without sweeps of its
        own accord. Keys as for `opensm`."""
        return RunningOpenSm(self._prepare(conf, name, guid2lid, "", attach))

    def _prepare(
        self,
        conf: Mapping[str, object],
        name: str,
        guid2lid: str | None,
        stanza: str,
        attach: str | None,
    ) -> Prepared:
        """A folder with the configuration, and how OpenSM is started in it."""
        folder = self.folder / name
        (folder / "cache").mkdir(parents=True)
        conf_file = folder / "opensm.conf"
        keys = {"force_log_flush": "TRUE"} | dict(conf)
        lines = "".join(f"{key} {value}\n" for key, value in keys.items())
        conf_file.write_text(lines + stanza)
        if guid2lid is not None:
            (folder / "cache" / "guid2lid").write_text(guid2lid)
        env = self.env | {
            "LD_PRELOAD": " ".join([*self.preload, str(UMAD2SIM)]),
            "OSM_TMP_DIR": str(folder),
            "OSM_CACHE_DIR": str(folder / "cache"),
        }
        if attach is not None:
            env["SIM_HOST"] = attach
        log = folder / "osm.log"
        # 0x47: errors, information, what is sent and answered, and the routing dumps.
        command = ["opensm", "-F", str(conf_file), "-e", "-f", str(log), "-D", "0x47"]
        return Prepared(command, env, folder, log)


@dataclass(frozen=True)
class Prepared:
    """How OpenSM is started, and where it writes."""

    command: list[str]
    env: dict[str, str]
    folder: Path
    log: Path


class RunningOpenSm:
    """An OpenSM in a process group of its own, from `with` to the end of the block."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self.folder = prepared.folder
        """Holds the dumps of its last sweep, as those of `OpenSm.folder`."""
        self._process: subprocess.Popen[bytes] | None = None
        self._log = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._read_bytes = 0

    def __enter__(self) -> RunningOpenSm:
        with (self.folder / "opensm.out").open("wb") as sink:
            self._process = subprocess.Popen(
                [*self._prepared.command, "-s", "0"],
                env=self._prepared.env,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait(lambda: self.sweeps > 0, "came up")
        except PeerError:
            _stop(self._process)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            _stop(self._process)

    @property
    def log(self) -> str:
        """Its log so far. It has megabytes, and whoever waits asks often: what was read is kept."""
        path = self._prepared.log
        if path.exists():
            with path.open("rb") as file:
                file.seek(self._read_bytes)
                new = file.read()
            self._read_bytes += len(new)
            self._log += self._decoder.decode(new)
        return self._log

    @property
    def sweeps(self) -> int:
        """How often the subnet came up."""
        return self.log.count("0x02 -> SUBNET UP")

    def sweep(self) -> str:
        """Has it read everything again and route; what it logged since, once the subnet is up."""
        assert self._process is not None
        before, logged = self.sweeps, len(self.log)
        os.kill(self._process.pid, signal.SIGHUP)
        self._wait(lambda: self.sweeps > before, "came up again")
        return self.log[logged:]

    def until(self, text: str) -> None:
        """Waits until the log has a text."""
        self._wait(lambda: text in self.log, f"logged {text!r}")

    def settled(self) -> None:
        """Waits until nothing has been logged for half a second: sweeps that traps asked for."""
        seen, since = len(self.log), time.monotonic()
        deadline = since + 30
        while time.monotonic() < min(since + 0.5, deadline):
            time.sleep(0.05)
            if len(self.log) != seen:
                seen, since = len(self.log), time.monotonic()

    def _wait(self, done: Callable[[], bool], what: str, limit_s: float = HANG_S) -> None:
        deadline = time.monotonic() + limit_s
        assert self._process is not None
        while not done():
            if self._process.poll() is not None:
                code = self._process.returncode
                raise PeerError(f"opensm ended with {code} before it {what}:\n{self.log[-3000:]}")
            if time.monotonic() > deadline:
                raise PeerError(f"opensm never {what} in {limit_s} s:\n{self.log[-3000:]}")
            time.sleep(0.02)


@dataclass(frozen=True)
class Verdict:
    """What ibdmchk found, from its words alone: it dies with SIGSEGV after a good verdict, so its
    exit code says nothing."""

    output: str

    @property
    def paths(self) -> int:
        """How many paths between adapters it walked to their end."""
        found = re.search(r"Scanned:(\d+) CA to CA paths", self.output)
        return int(found.group(1)) if found else 0

    @property
    def no_credit_loop(self) -> bool:
        """It looked for credit loops and said that there is none."""
        return "no credit loops found" in self.output

    @property
    def credit_loop(self) -> bool:
        """It named a credit loop."""
        return "credit loops in routing" in self.output

    @property
    def errors(self) -> list[str]:
        """Its error lines."""
        return [line for line in self.output.splitlines() if line.startswith("-E-")]


def ibdmchk(
    folder: Path,
    scratch: Path,
    *,
    tables: Path | None = None,
    sl_list: Path | None = None,
    sl2vl: Path | None = None,
    limit_s: float = HANG_S,
) -> Verdict:
    """Judges the tables in a folder that holds opensm-subnet.lst and opensm.fdbs (or `tables` in
    its place): every path between adapters, and credit loops under the given service levels and
    SL2VL tables. Works in `scratch`."""
    multicast = scratch / "empty.mcfdbs"
    multicast.write_text("")
    subnet, tables = folder / "opensm-subnet.lst", tables or folder / "opensm.fdbs"
    command = ["ibdmchk", "-s", str(subnet), "-f", str(tables), "-m", str(multicast)]
    if sl_list is not None:
        command += ["-c", str(sl_list)]
    if sl2vl is not None:
        command += ["-d", str(sl2vl)]
    # Without stdbuf the verdict can be lost in a buffer when it dies.
    done = run_bounded(["stdbuf", "-oL", *command], limit_s=limit_s, env=os.environ, cwd=scratch)
    return Verdict(done.stdout)


def missing_tools(names: Iterable[str]) -> list[str]:
    """Which of the programs are not on the path."""
    return [name for name in names if shutil.which(name) is None]
