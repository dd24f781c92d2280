"""The shipped site: what is committed is what the tools say, and it reads and routes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import readers
from conftest import ROOT, Clearlane
from peers import HANG_S, ibdmchk

FILES = [
    "opensm-lfts.dump",
    "opensm-subnet.lst",
    "opensm.fdbs",
    "site.dump_fts",
    "site.ibnetdiscover",
    "site.ibnetdiscover-p",
]
HOSTS, SWITCHES, CABLES = 279, 30, 420


def test_remaking_gives_the_committed_bytes(site: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "make-site"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=HANG_S, capture_output=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (site / name).read_bytes(), name


def test_the_three_table_files_agree(site: Path) -> None:
    dump = readers.lfts((site / "opensm-lfts.dump").read_text())
    assert len(dump) == SWITCHES
    assert all(len(row) == HOSTS + SWITCHES for row in dump.values())
    assert readers.lfts((site / "site.dump_fts").read_text()) == dump
    assert readers.fdbs((site / "opensm.fdbs").read_text()) == dump


def test_it_is_what_the_readme_says(site: Path, tmp_path: Path) -> None:
    cabling = readers.subnet_lst((site / "opensm-subnet.lst").read_text())
    assert len(cabling.hosts) == HOSTS
    assert len(cabling.switches) == SWITCHES
    assert len(cabling.cables) == 2 * CABLES
    assert cabling.names[cabling.leaf(cabling.named("storage01"))[0]] == "leaf00"
    verdict = ibdmchk(site, tmp_path)
    assert verdict.paths == HOSTS * (HOSTS - 1)
    assert verdict.no_credit_loop and not verdict.errors


def test_every_fabric_file_shows_the_same_site(site: Path, clearlane: Clearlane) -> None:
    for name in ["site.ibnetdiscover", "site.ibnetdiscover-p", "opensm-subnet.lst"]:
        shown = clearlane("fabric", "show", site / name).stdout
        assert f"{HOSTS} hosts, {SWITCHES} switches, {CABLES} cables" in shown, name


def test_its_own_tables_are_sane_from_every_file(site: Path, clearlane: Clearlane) -> None:
    dump = readers.lfts((site / "opensm-lfts.dump").read_text())
    for name in ["site.dump_fts", "opensm-lfts.dump", "opensm.fdbs"]:
        fabric = site / "site.ibnetdiscover"
        clearlane("check", fabric, "--lft", site / name)
        out = clearlane.folder / name
        clearlane("route", fabric, "--engine", "file", "--lft", site / name, "-o", out)
        assert readers.lfts((out / "lfts.txt").read_text()) == dump, name


def test_a_site_given_away_is_the_same_site_unnamed(site: Path, clearlane: Clearlane) -> None:
    given = ["--lft", site / "opensm-lfts.dump", "-o", "away.topo", "--lft-out", "away.lft"]
    clearlane("fabric", "anonymize", site / "site.ibnetdiscover", *given)
    cabling = readers.subnet_lst((site / "opensm-subnet.lst").read_text())
    for name in ["away.topo", "away.lft"]:
        text = (clearlane.folder / name).read_text()
        assert "2c1ea517e" not in text.lower(), name
        # Our made-up names may coincide with the site's `leaf00`; a host's may not.
        hosts = {cabling.names[host] for host in cabling.hosts}
        assert [host for host in sorted(hosts) if host in text] == [], name
    clearlane("check", "away.topo", "--lft", "away.lft")
