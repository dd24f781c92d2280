"""clearlane traffic as people use it: keys, agents as processes, runs, stops, a full disk, and a
plan's fabric as network namespaces. Needs root, /dev/fuse, iproute2 and tcpdump; without them it
fails.

When something was sent or stopped is judged by the clocks of agents, in packets.parquet and audit
logs. How long a test itself waits says how busy the machine is."""

import datetime
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import polars
import pytest

import flood
import hangs

ROOT = Path(__file__).resolve().parent.parent
BINARY = Path(os.environ.get("CLEARLANE_BIN", ROOT / "target/debug/clearlane")).resolve()
PLAN = ROOT / "experiments/ctbg-parking-lot.toml"
# Longest wait of a test. It only ends a test that would hang.
PATIENCE_S = 60
pytestmark = pytest.mark.alone


def clearlane(*words, code=0, **more):
    """A command and what it prints."""
    done = subprocess.run(
        [BINARY, *map(str, words)], capture_output=True, text=True, check=False, **more
    )
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


class Site:
    """A controller and agents on loopback, as processes."""

    def __init__(self, folder: Path):
        self.folder, self.controller = folder, folder / "controller"
        self.agents: dict[str, subprocess.Popen] = {}
        clearlane("traffic", "init", "--dir", self.controller)

    def enrol(self, names):
        """Has agents of these names join."""
        at = {
            name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(len(names)))
        }
        words = [f"{name}@{address}" for name, address in at.items()]
        command = [BINARY, "traffic", "enrol", "--dir", self.controller, *words]
        command += ["--listen", "127.0.0.1:0"]
        enrol = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = [enrol.stdout.readline() for _ in names]
        assert all(lines), enrol.communicate(timeout=PATIENCE_S)
        tokens = [line.split()[-1] for line in lines]
        for name, token in zip(names, tokens):
            clearlane("traffic", "join", token, "--dir", self.folder / name)
        out, err = enrol.communicate(timeout=PATIENCE_S)
        assert enrol.returncode == 0, out + err
        return at, tokens

    def start(self, at):
        """Starts agents."""
        for name, address in at.items():
            command = [BINARY, "traffic", "agent", "--dir", self.folder / name]
            self.agents[name] = subprocess.Popen(
                [*command, "--listen", address], stderr=subprocess.PIPE, text=True
            )
        for agent in self.agents.values():
            # It says so when it listens.
            assert "listens at" in agent.stderr.readline()

    def audit(self, name):
        """The lines of an audit log."""
        text = (self.folder / name / "audit.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def wait_for(self, name, key, value):
        """The first line of an audit log whose key has this value, once it is there."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            for line in self.audit(name):
                if line[key] == value:
                    return line
            assert time.monotonic() < deadline, f"no line of {name} has {key} {value}"
            time.sleep(0.05)

    def stop(self):
        """Ends the agents, in good order."""
        for agent in self.agents.values():
            agent.send_signal(signal.SIGTERM)
        codes = [agent.wait(timeout=PATIENCE_S) for agent in self.agents.values()]
        for agent in self.agents.values():
            agent.stderr.close()
        assert codes == [0] * len(codes)


def free_ports(count):
    """Ports that nobody listens at, no two of them equal."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


@pytest.fixture
def site(tmp_path):
    """A site whose agents end with the test."""
    made = Site(tmp_path)
    yield made
    made.stop()


def shortened(folder, replace):
    """The parking lot's plan with other lines."""
    text = PLAN.read_text().replace("../fixtures", str(ROOT / "fixtures"))
    for old, new in replace.items():
        assert old in text
        text = text.replace(old, new)
    path = folder / "plan.toml"
    path.write_text(text)
    return path


BRIEF = {
    '"12 s"': '"1200 ms"',
    '"10 s"': '"1 s"',
    '"3 s"': '"300 ms"',
    '"6 s"': '"600 ms"',
    '"9 s"': '"900 ms"',
}


def test_a_plan_runs_on_hosts_and_lies_over_its_simulation(site, tmp_path):
    at, _ = site.enrol(["H1", "H2", "H3", "H4", "H5"])
    site.start(at)
    status = json.loads(
        clearlane("--json", "traffic", "status", "--dir", site.controller).split("\nreport")[0]
    )
    assert [agent["run"] for agent in status["agents"]] == [None] * 5
    plan = shortened(tmp_path, BRIEF)
    measured, simulated = tmp_path / "measured", tmp_path / "simulated"
    text = clearlane("traffic", "run", plan, "--dir", site.controller, "--out", measured)
    assert "4 flows received" in text and "H1 → H4" in text
    names = {path.name for path in measured.iterdir()}
    expected = "traffic.json experiment.toml flow-series.parquet packets.parquet report.html"
    assert names == set(expected.split())
    result = json.loads((measured / "traffic.json").read_text())
    assert result["packets_lost"] == 0 and not result["partial"]
    packets = polars.read_parquet(measured / "packets.parquet")
    for flow in result["flows"]:
        own = packets.filter(polars.col("source") == flow["source"])
        assert own.height == flow["packets_sent"] == flow["packets_received"]
        assert own["sequence"].to_list() == list(range(own.height))
        assert own["bytes"].sum() == flow["bytes_received"]
        # Clocks of one machine are one clock, so nothing comes before it was sent.
        early = own.filter(polars.col("received_ns") + 2_000_000 < polars.col("sent_ns"))
        assert early.height == 0
    first = {flow["source"]: packets.filter(polars.col("source") == flow["source"])["sent_ns"].min()
             for flow in result["flows"]}
    order = [0.0, 0.3, 0.6, 0.9]
    for source, start in zip(["H1", "H3", "H2", "H5"], order):
        # Clocks are known to within a part of a millisecond; cores may be busy.
        assert start - 0.001 <= first[source] * 1e-9 < start + 0.5, first
    clearlane("run", plan, "--out", simulated)
    overlay = clearlane("compare", simulated, measured, "--out", tmp_path / "overlay")
    assert "measured has 4 of 4 flows in common with simulated" in overlay


@pytest.mark.parametrize("seconds", [5, pytest.param(60, marks=pytest.mark.long)])
def test_sixteen_agents_with_sixteen_flows_lose_nothing(site, tmp_path, seconds):
    names = [f"host{number:04}" for number in range(16)]
    at, _ = site.enrol(names)
    site.start(at)
    plan = tmp_path / "all.toml"
    shifts = "\n".join(
        f'[[traffic]]\nname = "by {by}"\nclass = "background"\n'
        f'pattern = {{ kind = "shift", by = {by} }}\nload = 1.0\nsize = "64 KiB"\n'
        'arrivals = "periodic"\n' + ("queue_pairs = 2\n" if by == 1 else "")
        for by in range(1, 16)
    )
    plan.write_text(
        'schema = 1\nname = "all"\n[fabric]\nbuild = "star:16,speed=1xSDR"\n[subnet]\n'
        'engine = "min-hop"\n[sim]\npreset = "sdr-2011"\n'
        f'[run]\nduration = "{seconds} s"\nwarm_up = "1 s"\nslices = 20\n{shifts}'
    )
    out = tmp_path / "out"
    clearlane("traffic", "run", plan, "--dir", site.controller, "--out", out, "--packet", "16 KiB")
    result = json.loads((out / "traffic.json").read_text())
    connections = sum(flow["connections"] for flow in result["flows"])
    assert connections == 16 * 16 and result["packets_lost"] == 0 and not result["partial"]
    assert all(flow["packets_unlogged"] == 0 for flow in result["flows"])
    # Every packet that was counted is in the table, and each was received.
    packets = polars.scan_parquet(out / "packets.parquet")
    counted = packets.select(
        polars.len(), polars.col("received_ns").null_count().alias("missing")
    ).collect()
    sent = sum(flow["packets_sent"] for flow in result["flows"])
    assert counted.row(0) == (sent, 0)
    print(f"{connections} connections, {sent:,} packets, {result['total_gbps']:.2f} Gb/s")


def test_a_controller_that_is_killed_leaves_nothing_sending(site, tmp_path):
    at, _ = site.enrol(["H1", "H2", "H3", "H4", "H5"])
    site.start(at)
    command = [BINARY, "traffic", "run", PLAN, "--dir", site.controller]
    run = subprocess.Popen([*command, "--out", tmp_path / "out"], stderr=subprocess.DEVNULL)
    site.wait_for("H1", "what", "start")
    time.sleep(1)
    # Stopped, it keeps its connections and says nothing, as a machine that hangs does.
    silent = time.time()
    run.send_signal(signal.SIGSTOP)
    stopped = [site.wait_for(name, "outcome", "stopped") for name in at]
    run.send_signal(signal.SIGKILL)
    run.wait()
    # Where the other end of a connection was the first to stop, that is what an agent says.
    assert any("lease ran out" in line["why"] for line in stopped), stopped
    for line in stopped:
        assert datetime.datetime.fromisoformat(line["time"]).timestamp() - silent < 3, line


def test_an_interrupted_run_keeps_what_was_sent(site, tmp_path):
    at, _ = site.enrol(["H1", "H2", "H3", "H4", "H5"])
    site.start(at)
    out = tmp_path / "out"
    command = [BINARY, "traffic", "run", PLAN, "--dir", site.controller, "--out", out]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    site.wait_for("H1", "what", "start")
    time.sleep(2)
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 4, said
    result = json.loads((out / "traffic.json").read_text())
    assert result["partial"] and result["packets_lost"] == 0
    assert result["flows"][0]["packets_sent"] > 1000


def test_a_full_disk_stops_the_run_and_the_audit_log_says_so(site, tmp_path):
    at, _ = site.enrol(["H1", "H2", "H3", "H4", "H5"])
    small, folder = tmp_path / "small", tmp_path / "H1"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", small], check=True)
    try:
        for path in folder.iterdir():
            (small / path.name).write_bytes(path.read_bytes())
            (small / path.name).chmod(0o600)
        mine = at.pop("H1")
        site.start(at)
        command = [BINARY, "traffic", "agent", "--dir", small, "--listen", mine]
        site.agents["H1"] = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert "listens at" in site.agents["H1"].stderr.readline()
        out = tmp_path / "out"
        said = clearlane("traffic", "run", PLAN, "--dir", site.controller, "--out", out, code=4)
        assert "agent H1 stopped" in said and "disk is full" in said, said
        lines = [json.loads(line) for line in (small / "audit.jsonl").read_text().splitlines()]
        assert any(line["outcome"] == "stopped" and "full" in line["why"] for line in lines), lines
        # Nobody else is disturbed: the next run, without that host, is whole.
        plan = shortened(tmp_path, {**BRIEF, '["H1"]': '["H2"]'})
        clearlane("traffic", "run", plan, "--dir", site.controller, "--out", tmp_path / "after")
    finally:
        site.agents.pop("H1").terminate()
        time.sleep(0.5)
        subprocess.run(["umount", "-l", small], check=True)


def two_hosts(folder, seconds):
    """A plan in which one host sends to another."""
    path = folder / "two.toml"
    path.write_text(
        'schema = 1\nname = "two"\n[fabric]\nbuild = "star:2,speed=1xSDR"\n[subnet]\n'
        'engine = "min-hop"\n[sim]\npreset = "sdr-2011"\n'
        f'[run]\nduration = "{seconds} s"\nwarm_up = "0 s"\nslices = 20\n'
        '[[traffic]]\nname = "all"\nclass = "hot"\npattern = { kind = "incast", to = 0 }\n'
        'senders = { except = [0] }\nload = 1.0\nsize = "8 KiB"\narrivals = "periodic"\n'
    )
    return path


def stopped_while(site, out, hang):
    """Runs the plan of two hosts and, while `hang` is in force, asks its sender for its status and
    stops it. What it says, and the seconds that both took."""
    plan, took = two_hosts(site.folder, 200), []
    before = len(site.audit("host0001"))
    command = [BINARY, "traffic", "run", plan, "--dir", site.controller, "--out", out]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + PATIENCE_S
    while not any(line["what"] == "start" for line in site.audit("host0001")[before:]):
        assert run.poll() is None, run.stdout.read()
        assert time.monotonic() < deadline, "it does not start"
        time.sleep(0.05)
    # It sends half a second after that.
    time.sleep(1)
    with hang:
        asked = time.monotonic()
        ask = ["--dir", site.controller, "host0001"]
        status = json.loads(clearlane("--json", "traffic", "status", *ask))["agents"][0]
        took.append(time.monotonic() - asked)
        assert clearlane("traffic", "stop", *ask) == "host0001: stopped run two\n"
        took.append(time.monotonic() - asked - took[0])
        said, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 4, said
    assert status["run"]["state"] == "sending", status
    # Lines that were told meanwhile are in the audit log when its disk is there again.
    deadline = time.monotonic() + PATIENCE_S
    while not any(line["outcome"] == "stopped" for line in site.audit("host0001")[before:]):
        assert time.monotonic() < deadline, site.audit("host0001")
        time.sleep(0.05)
    return status["policy"][0], took


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["pipes", "stalled"])
def test_files_that_hang_hold_up_neither_stop_nor_status(site, tmp_path, kind, rounds):
    at, _ = site.enrol(["host0000", "host0001"])
    site.start(at)
    folder, took = site.folder / "host0001", []
    for number in range(rounds):
        hang = hangs.stalled(folder)
        if kind == "pipes":
            names = ["policy.toml", "audit.jsonl", "spool/reserve", "spool/0-sent.log"]
            hang = hangs.pipes(*(folder / name for name in names))
        policy, more = stopped_while(site, tmp_path / f"out{number}", hang)
        words = {"pipes": "is a pipe or a device", "stalled": "the disk has not answered for"}
        assert words[kind] in policy, policy
        took += more
    print(f"{kind}: status and stop answered in {max(took):.3f} s at most of {len(took)}")
    if rounds > 1:
        assert max(took) <= 1, took
    clearlane("traffic", "run", two_hosts(tmp_path, 1), "--dir", site.controller, "--out",
              tmp_path / "after")


def test_an_agent_whose_disk_hangs_ends_when_it_is_told_to(site):
    at, _ = site.enrol(["host0000", "host0001"])
    site.start(at)
    agent, folder = site.agents.pop("host0001"), site.folder / "host0001"
    with hangs.stalled(folder):
        agent.send_signal(signal.SIGTERM)
        _, said = agent.communicate(timeout=PATIENCE_S)
        assert agent.returncode == 0, said
        # So does one that cannot start there.
        command = [BINARY, "traffic", "agent", "--dir", folder, "--listen", at["host0001"]]
        agent = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        agent.send_signal(signal.SIGTERM)
        _, said = agent.communicate(timeout=PATIENCE_S)
    assert agent.returncode == 4, said
    assert said == f"clearlane: interrupted; the disk of {folder} has not answered until then\n"


@pytest.mark.parametrize("stops", [4, pytest.param(20, marks=pytest.mark.long)])
def test_a_flood_from_two_hundred_addresses_does_not_keep_stop_out(site, stops):
    """The addresses are of two networks of IPv4 and two of IPv6. The controller is in one too."""
    site.enrol(["H1"])
    name, port, took = f"flood{os.getpid()}", free_ports(1)[0], []
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        within = ["ip", "netns", "exec", name]
        on = "echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6"
        subprocess.run([*within, "sh", "-c", on], check=True)
        lines = "".join(f"addr add {address}/64 dev lo nodad\n"
                        for address in [*flood.V6, flood.CONTROLLER[1]])
        subprocess.run(["ip", "-n", name, "-batch", "-"], input=f"link set lo up\n{lines}",
                       text=True, check=True)
        folder = site.folder / "H1"
        command = [*within, BINARY, "traffic", "agent", "--dir", folder, "--listen", f"[::]:{port}"]
        agent = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        site.agents["H1"] = agent
        assert "listens at" in agent.stderr.readline()
        command = [*within, sys.executable, flood.__file__, str(port)]
        flooding = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        began = time.monotonic()
        try:
            # By then the agent has turned away many from each address.
            came = 0
            while came < 5000:
                came = int(flooding.stdout.readline())
            lasted = time.monotonic() - began
            for number in range(stops):
                v4, v6 = flood.CONTROLLER
                whom = f"H1@{v4}:{port}" if number % 2 == 0 else f"H1@[{v6}]:{port}"
                stop = [*within, BINARY, "traffic", "stop", "--dir", site.controller, whom]
                asked = time.monotonic()
                done = subprocess.run(stop, capture_output=True, text=True, check=False)
                took.append(time.monotonic() - asked)
                assert done.stdout == "H1: no run was under way\n", (number, done)
        finally:
            flooding.kill()
            flooding.communicate()
        print(f"stop within {max(took):.2f} s at most of {stops}, beside "
              f"{came / lasted:.0f} connections a second")
        if stops > 4:
            assert max(took) <= 3, took
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        (".", lambda path: path.chmod(0o777), "others than its owner may write into this folder"),
        ("ca.pem", lambda path: path.chmod(0o666), "others than its owner may write it"),
        ("cert.pem", lambda path: path.chmod(0o664), "others than its owner may write it"),
        ("policy.toml", lambda path: os.chown(path, 1000, 1000), "belongs to user 1000"),
        ("audit.jsonl", lambda path: os.chown(path, 1000, 1000), "belongs to user 1000"),
        (".", lambda path: os.chown(path, 1000, 1000), "belongs to user 1000"),
    ],
)
def test_an_agent_trusts_only_what_its_owner_and_root_may_write(site, name, change, told):
    site.enrol(["H1"])
    path = site.folder / "H1" / name
    if name == "audit.jsonl":
        path.touch()
    change(path)
    command = [BINARY, "traffic", "agent", "--dir", site.folder / "H1", "--listen", "127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == (5 if name == "audit.jsonl" else 2), done
    line = f"clearlane: {path.resolve()}: {told}"
    assert done.stderr.startswith(line) and len(done.stderr.splitlines()) == 1, done


def test_a_token_is_used_up(site, tmp_path):
    _, tokens = site.enrol(["H1"])
    folder = tmp_path / "again"
    said = clearlane("traffic", "join", tokens[0], "--dir", folder, code=2)
    assert "is `clearlane traffic enrol` still waiting there?" in said
    said = clearlane("traffic", "join", "../../etc/passwd", "--dir", folder, code=2)
    assert "is no enrolment token" in said
    assert not folder.exists()


def test_keys_are_not_for_others(site):
    site.enrol(["H1"])
    for owner in ["controller", "H1"]:
        folder = site.folder / owner
        assert folder.stat().st_mode & 0o077 == 0
        for name in ["key.pem", "ca-key.pem"]:
            path = folder / name
            assert not path.exists() or path.stat().st_mode & 0o077 == 0
    assert not (site.folder / "H1/ca-key.pem").exists()


def namespaces():
    """Those of testbeds."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in listed.stdout.splitlines() if line]
    return [name for name in names if name.startswith("clane")]


def parking_lot(folder, seconds, starts):
    """The plan with all starts so."""
    text = PLAN.read_text().replace("../fixtures", str(ROOT / "fixtures"))
    text = text.replace('"12 s"', f'"{seconds} s"').replace('"10 s"', f'"{seconds // 3} s"')
    for old, new in zip(["3 s", "6 s", "9 s"], starts):
        text = text.replace(f'start = "{old}"', f'start = "{new}"')
    path = folder / "lot.toml"
    path.write_text(text)
    return path


def test_a_queue_for_each_input_shares_as_the_fabric_does(tmp_path):
    """The parking lot in namespaces, at a tenth of its rate so that cores are not what is measured.
    One queue cannot tell inputs apart; one for each gives H3 and H5 a third each, as simulated."""
    plan = parking_lot(tmp_path, 9, ["0 s", "0 s", "0 s"])
    out = tmp_path / "out"
    text = clearlane("--json", "traffic", "testbed", plan, "--slower", 10, "--out", out)
    result = json.loads(text[text.index("{") : text.rindex("}") + 1])
    shares = {row["flow"].split()[0]: row["shares"] for row in result["shares"]}
    simulated = {host: row["simulated"] for host, row in shares.items()}
    expected = {"H1": 1 / 6, "H2": 1 / 6, "H3": 1 / 3, "H5": 1 / 3}
    for host, share in expected.items():
        assert abs(simulated[host] - share) < 0.01, simulated
    by_input = {host: row["by-input"] for host, row in shares.items()}
    assert abs(by_input["H3"] - 1 / 3) < 0.02 and abs(by_input["H5"] - 1 / 3) < 0.02, by_input
    assert abs(by_input["H1"] + by_input["H2"] - 1 / 3) < 0.02, by_input
    for run in result["runs"]:
        # 0.2 Gb/s, less the headers of Ethernet, IP and TCP.
        assert 0.17 < run["total_gbps"] < 0.2, run
        assert run["result"]["packets_lost"] == 0
    assert (out / "overlay/report.html").exists()
    assert namespaces() == []


def test_captures_beside_a_run_are_counted(tmp_path):
    plan = parking_lot(tmp_path, 3, ["0 s", "0 s", "0 s"])
    words = ["--slower", 10, "--queue", "fifo", "--tcpdump", "--out", tmp_path / "out"]
    text = clearlane("--json", "traffic", "testbed", plan, *words)
    result = json.loads(text[text.index("{") : text.rindex("}") + 1])
    runs = {run["tcpdump"]: run for run in result["runs"]}
    assert list(runs)[0] == "no tcpdump" and len(runs) == 4
    assert runs["no tcpdump"]["captured"] is None
    for name, run in runs.items():
        if name != "no tcpdump":
            assert run["captured"] > 10_000, run
    assert namespaces() == []


# Hosts and switches of the parking lot.
NAMESPACES = 8


def begun_testbed(tmp_path):
    """A testbed whose agents run, in namespaces that were not there before."""
    before = set(namespaces())
    command = [BINARY, "traffic", "testbed", PLAN, "--slower", "10", "--out", tmp_path / "out"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + PATIENCE_S
    while len(set(namespaces()) - before) < NAMESPACES:
        assert time.monotonic() < deadline, "the testbed does not come up"
        time.sleep(0.1)
    time.sleep(1)
    return run


def test_an_interrupted_testbed_is_taken_away(tmp_path):
    run = begun_testbed(tmp_path)
    run.send_signal(signal.SIGINT)
    time.sleep(0.2)
    # Once more, as who is in a hurry does.
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 4, said
    assert "interrupted; the testbed is taken away first" in said
    assert namespaces() == []


def test_a_killed_testbed_is_taken_away_by_the_next(tmp_path):
    run = begun_testbed(tmp_path)
    run.kill()
    run.wait()
    assert len(namespaces()) == NAMESPACES
    # One that is interrupted early is enough.
    run = begun_testbed(tmp_path / "next")
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=PATIENCE_S)
    assert "took away 8 namespaces of a testbed that was killed" in said
    assert namespaces() == []


def test_a_fabric_with_loops_is_no_testbed(tmp_path):
    plan = tmp_path / "loop.toml"
    plan.write_text(
        'schema = 1\nname = "loop"\n[fabric]\nbuild = "torus:3"\n[subnet]\nengine = "dor"\n'
        'lanes = 2\n'
        '[sim]\npreset = "sdr-2011"\n[run]\nduration = "1 s"\n[[traffic]]\nname = "all"\n'
        'class = "hot"\npattern = { kind = "incast", to = 0 }\nload = 1.0\nsize = "4 KiB"\n'
        'arrivals = "periodic"\n'
    )
    said = clearlane("traffic", "testbed", plan, "--out", tmp_path / "out", code=2)
    assert "bridges of Ethernet need a tree" in said
