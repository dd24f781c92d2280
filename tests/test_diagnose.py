"""`clearlane diagnose`: from a site's files to a verdict."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import ROOT, Clearlane

FABRIC = ROOT / "fixtures/site/site.ibnetdiscover"
SITE = [FABRIC, "--lft", ROOT / "fixtures/site/site.dump_fts"]


def labels(text: str) -> list[str]:
    """The labels of a verdict's lines."""
    lines = text.split("\n\n")[0].splitlines()
    return [line.split("  ")[0].strip() for line in lines if not line.startswith(" ")]


def test_facts_decide_the_exit_code(clearlane: Clearlane) -> None:
    said = clearlane("diagnose", *SITE, "--facts", code=1).stdout
    assert said.startswith("fault  ")
    assert "\nalso " in said and "\nfacts  3\n" in said
    assert labels(said)[-1] == "next"
    said = clearlane("diagnose", "torus:6x6", "--facts").stdout
    assert said.startswith("healthy  no fault in the cables")


def test_the_shipped_site_has_a_verdict(clearlane: Clearlane, tmp_path: Path) -> None:
    out = tmp_path / "diagnosis"
    words = ["diagnose", *SITE, "--hot", "storage01", "--seeds", "1", "-o", str(out)]
    said = json.loads(clearlane(*words, "--json", code=1).stdout)
    assert said["schema"] == "clearlane-diagnosis/1"
    lines = {line["label"]: line["text"] for line in said["verdict"]["lines"]}
    assert len(said["verdict"]["lines"]) <= 6
    assert lines["bottleneck"].startswith("storage01 is hot")
    assert lines["helps"].startswith("hot traffic on a lane of its own: victims get ")
    assert "wait for leaf00[4] → storage01[1]" in lines["victims"]
    kinds = {fact["fact"] for fact in said["facts"]}
    assert {"missing-cables", "slow-trunks", "slow-host-links"} <= kinds
    summary = json.loads((out / "summary.json").read_text())
    assert summary["verdict"] == said["verdict"]
    # The experiment can be run again by itself.
    again = clearlane(
        "run", str(out / "experiment.toml"), "--out", str(tmp_path / "again"), "--json"
    )
    assert json.loads(again.stdout)["headline"] == summary["headline"]


def test_a_host_that_is_not_there_or_not_one_is_told(clearlane: Clearlane, tmp_path: Path) -> None:
    problem = clearlane("diagnose", *SITE, "--hot", "storage1", code=2).stderr
    assert "no host is named storage1; did you mean storage01?" in problem
    text = FABRIC.read_text()
    same = tmp_path / "same.ibnetdiscover"
    same.write_text(text.replace('"storage02"', '"storage01"').replace("storage02", "storage01"))
    problem = clearlane("diagnose", str(same), "--hot", "storage01", code=2).stderr
    assert "2 hosts are named storage01; give the GUID of one, such as 0x" in problem
    twice = ["--hot", "storage01", "--hot", "storage01"]
    problem = clearlane("diagnose", *SITE, *twice, code=2).stderr
    assert "storage01 is named twice as hot; name it once" in problem
    problem = clearlane("diagnose", *SITE, "--traffic", "nosuch.toml", code=2).stderr
    assert "clearlane: cannot read nosuch.toml: no such file or folder" in problem
    assert not (tmp_path / "runs").exists(), "nothing is half-written"


def test_tables_that_are_cut_off_are_told(clearlane: Clearlane, tmp_path: Path) -> None:
    tables = (ROOT / "fixtures/site/site.dump_fts").read_text()
    (tmp_path / "cut.fts").write_text(tables[:100_000])
    said = clearlane("diagnose", FABRIC, "--lft", "cut.fts", "--facts", code=1).stdout
    first = " ".join(said.split("\nalso")[0].split())
    assert first.startswith("fault 25 of 30 switches have no table in the files: "), first
    assert "next   dump the tables again: the file may be cut off" in said
