"""The report of the demo in a real browser, opened from disk."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from conftest import ROOT, Clearlane
from peers import run_bounded


@pytest.fixture(scope="module")
def report(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo, run as `make demo` runs it."""
    folder = tmp_path_factory.mktemp("demo")
    run = Clearlane(binary, ROOT)
    run("run", "experiments/demo-hot-spot.toml", "--out", folder / "demo", limit_s=300)
    return folder / "demo" / "report.html"


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
    done = run_bounded(command, limit_s=60, env=os.environ, cwd=folder)
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
