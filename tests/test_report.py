"""The report of the demo in a real browser, opened from disk: it opens, asks nobody for anything,
and what a reader clicks through agrees with the run's own numbers."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Clearlane
from peers import run_bounded


@dataclass
class Run:
    """A run's folder and what clicking through its report showed."""

    folder: Path
    summary: dict[str, Any]
    shown: dict[str, Any]

    @property
    def report(self) -> Path:
        return self.folder / "report.html"


def clicked(binary: Path, experiment: str, folder: Path, *words: str) -> Run:
    """Runs an experiment and clicks through its report."""
    Clearlane(binary, ROOT)("run", f"experiments/{experiment}.toml", "--out", folder, *words)
    report = folder / "report.html"
    read = ["node", str(ROOT / "web/test/read.mjs"), str(report)]
    done = run_bounded(read, env=os.environ, cwd=ROOT / "web")
    assert done.returncode == 0, done.stderr[-2000:]
    summary = json.loads((folder / "summary.json").read_text())
    return Run(folder, summary, json.loads(done.stdout))


@pytest.fixture(scope="module")
def demo(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The demo, run as `make demo` runs it."""
    return clicked(binary, "demo-hot-spot", tmp_path_factory.mktemp("demo") / "demo")


@pytest.fixture(scope="module")
def report(demo: Run) -> Path:
    return demo.report


def number(text: str) -> float:
    """A number as the page writes it: groups of digits, a unit or a sign behind it."""
    found = re.match(r"^<? ?(-?[\d\u202f\u2009 ]*\d(?:\.\d+)?)", text.replace("\u2212", "-"))
    assert found, text
    return float(re.sub(r"[^\d.-]", "", found.group(1)))


def chromium(page: Path, folder: Path, *arguments: str) -> str:
    """Opens a page headless, in a profile of its own; what it printed. Its network log is
    folder/net.json."""
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        # Nobody answers: neither what a page asks for nor what the browser does by itself.
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={folder / 'profile'}",
        f"--log-net-log={folder / 'net.json'}",
        "--virtual-time-budget=10000",
        *arguments,
        page.as_uri(),
    ]
    done = run_bounded(command, env=os.environ, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def requested(folder: Path) -> list[str]:
    """Addresses that a page asked any network for. The browser asks its maker for the time and for
    updates; such requests have no page as their initiator."""
    found = set()
    for line in (folder / "net.json").read_text(errors="replace").splitlines():
        initiator = re.search(r'"initiator":"([^"]*)"', line)
        if initiator and initiator.group(1) != "not an origin":
            found.update(re.findall(r'"url":"((?:https?|wss?|ftp):[^"]*)"', line))
    return sorted(found)


def test_the_report_says_what_happened(report: Path, tmp_path: Path) -> None:
    shown = chromium(report, tmp_path, "--dump-dom", "--window-size=1280,900")
    assert requested(tmp_path) == []
    assert "__CLEARLANE_DATA__" not in shown
    for text in ["storage01", "279 hosts", "<svg", "Not modelled"]:
        assert text in shown, text
    # Worst links name the ports of both ends.
    assert re.search(r"\w+\[\d+\] → \w+\[\d+\]", shown)


def test_the_report_paints(report: Path, tmp_path: Path) -> None:
    picture = tmp_path / "report.png"
    chromium(report, tmp_path, f"--screenshot={picture}", "--window-size=1280,900")
    assert picture.stat().st_size > 20_000, "a blank page is a few kilobytes"


def test_the_report_is_small_enough_to_mail(report: Path) -> None:
    assert report.stat().st_size <= 4 << 20


def test_clicking_through_goes_without_a_problem(demo: Run) -> None:
    assert demo.shown["problems"] == []
    assert demo.shown["requests"] == [demo.report.as_uri()]


def test_the_table_shows_the_numbers_of_the_summary(demo: Run) -> None:
    columns = {"hot payload": "hot_accepted_gbps", "victim p99": "victim_latency_p99"}
    columns |= {"victim payload": "victim_accepted_gbps", "victim slowdown": "slowdown"}
    columns |= {"held back": "held_back", "victim Jain": "victim_jain"}
    [head] = demo.shown["headline"]["head"]
    # Below a name: whether it had settled, and what is different in it.
    rows = {row[0].split(" ")[0]: row for row in demo.shown["headline"]["rows"]}
    assert rows["as-is"][0].endswith("the site's own tables")
    assert rows.keys() == demo.summary["headline"].keys()
    for name, figures in demo.summary["headline"].items():
        for label, key in columns.items():
            place = next(i for i, text in enumerate(head) if text.startswith(label))
            if not figures[key]["steady"]:
                assert rows[name][place] == "no steady value", (name, key)
                continue
            value, interval = (number(part) for part in rows[name][place].split("±"))
            half = figures[key]["half_width"]
            assert value == pytest.approx(figures[key]["mean"], rel=0.005, abs=half), (name, key)
            assert interval == pytest.approx(half, rel=0.5, abs=0.01), (name, key)


def test_time_plays_and_the_tree_grows_and_goes(demo: Run) -> None:
    shown = demo.shown
    assert shown["first"]["time"][0].startswith("0.00 ms")
    assert shown["playing"]["button"] == ["❚❚ Pause"]
    assert shown["playing"]["time"] != shown["first"]["time"]
    assert shown["paused"]["button"] == ["▶ Play"]
    # The receiver's link is the root, over the whole run and 27 or so channels.
    [said] = shown["trees"]["whole"]
    root = re.match(r"Congestion tree: (\S+ → storage01\[1\]) holds back (\d+) ch", said)
    assert root and int(root.group(2)) > 15, shown["trees"]
    assert shown["trees"]["lit"] > 2 * 15
    # Who presses it reads that it is full and free to send.
    assert shown["root"]["title"] == root.group(1)
    assert shown["root"]["said"][0].startswith("100 % used")
    assert shown["root"]["said"][0].endswith("; 0 % of the time held back.")


def test_two_variants_stand_side_by_side(demo: Run) -> None:
    assert demo.shown["beside"]["titles"] == ["as-is", "two-lanes"]
    assert len(demo.shown["beside"]["trees"]) == 2


def test_who_suffers_adds_up_to_the_victims(demo: Run) -> None:
    """Flows are of the first seed: together they are what the summary says of its victims."""
    run = demo.summary["variants"][0]["runs"][0]
    victims = run["classes"]["victim"]
    rows = demo.shown["sufferers"]["rows"]
    [head] = demo.shown["sufferers"]["head"]
    column = {text.split(" ")[0]: i for i, text in enumerate(head)}
    assert len(rows) == victims["senders"]
    delivered = sum(number(row[column["Delivered"]]) for row in rows)
    alone = sum(number(row[column["Alone"]]) for row in rows)
    assert delivered == pytest.approx(victims["accepted_gbps"], rel=0.01)
    assert alone / delivered == pytest.approx(run["victim_slowdown"], rel=0.01)
    # Worst first, and most of the worst ten are told what holds them back.
    slowdowns = [number(row[column["Slowdown"]]) for row in rows]
    assert slowdowns == sorted(slowdowns, reverse=True)
    assert sum("storage01" in row[-1] for row in rows[:10]) >= 6
    slowed = sum(slowdown >= 1.25 for slowdown in slowdowns)
    assert f": {slowed} of {len(rows)} flows" in demo.shown["sufferers"]["note"]
    assert demo.shown["flow"]["title"] == f"Flow {rows[0][0]}"
    # From its host through the tree to the other: up, down, and the two last links.
    assert len(demo.shown["flow"]["path"]) in (2, 4)


def test_a_worst_link_opens_with_its_numbers_and_flows(demo: Run) -> None:
    """The first of the table is held back most; its numbers are means over the seeds."""
    held = [run["most_held_back_link"] for run in demo.summary["variants"][0]["runs"]]
    worst = demo.shown["worst"][0]
    assert demo.shown["link"]["title"] == worst[0]
    assert number(worst[3]) / 100 == pytest.approx(max(one["wait"] for one in held), abs=0.02)
    said = re.match(r"(<? ?\d+) % used, .*; (\d+) % of the time", demo.shown["link"]["said"][0])
    assert said, demo.shown["link"]
    assert int(said.group(2)) == pytest.approx(number(worst[3]), abs=0.6)
    flows = demo.shown["link"]["flows"]
    assert flows and any("storage01" in flow[0] for flow in flows)
    assert demo.shown["link"]["charts"] == 2


def test_variants_that_differ_in_load_are_curves(binary: Path, tmp_path: Path) -> None:
    run = clicked(binary, "torus8-saturation", tmp_path / "torus", "--seeds", "1")
    curves = run.shown["curves"]
    assert curves["charts"] == 2
    assert curves["keys"][:3] == ["0.3 … 1.0", "deep", "deep free"]
    summary = run.summary["headline"]
    points = {(row[0], row[1]): row for row in curves["rows"]}
    steady = set()
    for line, prefix, least in [("0.3 … 1.0", "", "0.3"), ("deep", "deep ", "0.5")]:
        for load in [least, "0.8", "1"]:
            name = prefix + {"1": "1.0"}.get(load, load)
            delivered, latency = points[(line, load)][2:4]
            expected = summary[name]["delivered_load"]["mean"]
            assert number(delivered) == pytest.approx(expected, abs=0.001)
            figure = summary[name]["latency_mean"]
            if figure["steady"]:
                steady.add(name)
                assert number(latency) == pytest.approx(figure["mean"], rel=0.01)
            else:
                assert latency == "no steady value"
    assert "0.3" in steady and "1.0" not in steady


def test_the_report_names_no_address_to_load(report: Path) -> None:
    text = report.read_text()
    loads = re.findall(r'(?:src|href)\s*=\s*["\']?((?:https?:)?//[^"\'\s>]*)', text)
    assert loads == []
    assert "@import" not in text


def test_the_network_log_would_show_a_request(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        '<img src="http://a.invalid/pixel.png">'
        '<link rel="stylesheet" href="https://b.invalid/x.css">'
        '<script>fetch("http://c.invalid/data").catch(() => 0); new WebSocket("ws://d.invalid/")'
        "</script>"
    )
    chromium(page, tmp_path, "--dump-dom")
    assert requested(tmp_path) == [
        "http://a.invalid/pixel.png",
        "http://c.invalid/data",
        "https://b.invalid/x.css",
        "ws://d.invalid/",
    ]
