"""`clearlane diagnose`: from a site's files to a verdict."""

from __future__ import annotations

import gzip
import json
import re
import shlex
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
    words += ["--control", "no"]
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
    assert "there is no host `storage1`, the nearest name is `storage01`" in problem
    text = FABRIC.read_text()
    same = tmp_path / "same.ibnetdiscover"
    same.write_text(text.replace('"storage02"', '"storage01"').replace("storage02", "storage01"))
    problem = clearlane("diagnose", str(same), "--hot", "storage01", code=2).stderr
    assert "2 hosts are named `storage01`; give the GUID of one, such as 0x" in problem
    problem = clearlane("diagnose", *SITE, "--hot", "leaf00", code=2).stderr
    assert "leaf00 is a switch; name a host that is plugged into it" in problem
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


def test_tables_that_lose_paths_are_simulated(clearlane: Clearlane, tmp_path: Path) -> None:
    """What can run runs: dead pairs are left out, and the host they lead to is named."""
    lines = (ROOT / "fixtures/site/site.dump_fts").read_text().splitlines()
    here, kept = False, []
    for line in lines:
        if line.startswith("Unicast"):
            here = "(leaf17)" in line
        if not (here and line.endswith("'node007')")):
            kept.append(line)
    (tmp_path / "holes.fts").write_text("\n".join(kept) + "\n")
    out = tmp_path / "holes"
    words = ["--lft", "holes.fts", "--hot", "storage01", "--seeds", "1", "--control", "no"]
    said = clearlane("diagnose", FABRIC, *words, "-o", str(out), "--json", code=1).stdout
    diagnosis = json.loads(said)
    lines_said = {line["label"]: line["text"] for line in diagnosis["verdict"]["lines"]}
    assert lines_said["fault"].startswith("leaf17 has no entry for node007 (LID 6); "), lines_said
    assert "simulated without the 11 paths that do not arrive" in lines_said["bottleneck"]
    assert diagnosis["what_if"]["variants"][0]["name"] == "as-is"


def test_hosts_have_the_names_of_a_map(clearlane: Clearlane, tmp_path: Path) -> None:
    found = re.search(r'caguid=(\S+)\nCa\s+1 "[^"]+"\s+# "node100"', FABRIC.read_text())
    assert found is not None
    guid = found.group(1)
    (tmp_path / "map").write_text(f'# rack 7\n{guid} "slow host"\n')
    said = clearlane("diagnose", *SITE, "--facts", "--node-name-map", "map", code=1).stdout
    assert "slow host is on a slow link" in said
    (tmp_path / "other").write_text('0x1234 "nobody"\n')
    problem = clearlane("check", *SITE, "--node-name-map", "other", code=2).stderr
    assert "other names no node of" in problem


def test_the_best_engine_is_recommended_and_taken(clearlane: Clearlane, tmp_path: Path) -> None:
    words = ["route", *SITE[:1], "--best", *SITE[1:], "-o", str(tmp_path / "tables")]
    said = json.loads(clearlane(*words, "--json").stdout)
    safe = [entry for entry in said["tried"] if "figures" in entry]
    assert said["engine"] == said["tried"][0]["engine"] == safe[0]["engine"]
    shares = [round(100 * entry["figures"]["bisection_share"]) for entry in safe]
    assert shares == sorted(shares, reverse=True) and len(safe) >= 3
    assert said["compared"]["now"]["paths_lost"] == 0
    assert (tmp_path / "tables" / "lfts.txt").exists()
    text = clearlane(*words[:-1], str(tmp_path / "again")).stdout
    assert "recommended" in text.splitlines()[1]


def test_a_packed_file_is_read(clearlane: Clearlane, tmp_path: Path) -> None:
    (tmp_path / "site.gz").write_bytes(gzip.compress(FABRIC.read_bytes()))
    said = clearlane("fabric", "show", "site.gz").stdout
    assert said.startswith("279 hosts, 30 switches")


def test_a_host_of_an_experiment_that_is_missing_is_an_error(
    clearlane: Clearlane, tmp_path: Path
) -> None:
    clearlane("fabric", "build", "leaf-spine:leaves=4,hosts=4,spines=2", "-o", "own.topo")
    demo = str(ROOT / "experiments/demo-hot-spot.toml")
    words = ["compare", demo, "--variants", "fat-tree,two-lanes", "--fabric", "own.topo"]
    problem = clearlane(*words, "--out", str(tmp_path / "a"), code=2).stderr
    assert "there is no host `storage01`" in problem and "with --stand-in" in problem
    said = clearlane(*words, "--stand-in", "--out", str(tmp_path / "b")).stdout
    assert "no host storage01 here; host0000 stands in for it" in said


def test_engines_of_a_site_are_swept(clearlane: Clearlane, tmp_path: Path) -> None:
    text = (ROOT / "experiments/demo-hot-spot.toml").read_text().split("[[variant]]")[0]
    text = text.replace("../fixtures", str(ROOT / "fixtures"))
    (tmp_path / "site.toml").write_text(text.replace("seeds = 3", "seeds = 1"))
    over = "subnet.engine=file,fat-tree,up-down"
    words = ["--fabric", str(FABRIC), "--lft", str(SITE[2]), "--over", over]
    said = clearlane("sweep", "site.toml", *words, "--out", str(tmp_path / "sweep")).stdout
    assert all(engine in said for engine in ["file", "fat-tree", "up-down"])


def test_a_report_can_be_given_away(clearlane: Clearlane, tmp_path: Path) -> None:
    """No name, no GUID and no path of the site is in anything that is written."""
    words = [*SITE, "--hot", "storage01", "--seeds", "1", "--control", "no", "--anonymize"]
    said = clearlane("diagnose", *words, "-o", "away", code=1).stdout
    fabric = FABRIC.read_text()
    secrets = set(re.findall(r'# "([^"]+)"', fabric)) | set(re.findall(r"guid=(0x\w+)", fabric))
    secrets = {secret.removeprefix("0x") for secret in secrets} - {"0"}
    # Names that are made up by the same rule say nothing, and short ones are anywhere by chance.
    made_up = {name for name in secrets if re.fullmatch(r"(leaf|spine)\d+", name)}
    secrets -= made_up | {name for name in secrets if len(name) < 7}
    assert len(secrets) > 500 and "storage01" in secrets
    texts = [said]
    for folder in ["away", "away-files"]:
        for path in sorted((tmp_path / folder).iterdir()):
            texts.append(path.read_bytes().decode("utf-8", errors="replace"))
    for text in texts:
        assert str(tmp_path) not in text and str(ROOT) not in text
        found = [secret for secret in secrets if secret in text]
        assert not found, found[:3]
    # Where the results may not be replaced, the files are not either.
    before = (tmp_path / "away-files" / "tables-1").stat().st_mtime_ns
    problem = clearlane("diagnose", *words, "-o", "away", code=2).stderr
    assert "holds an earlier run" in problem
    assert (tmp_path / "away-files" / "tables-1").stat().st_mtime_ns == before
    # The report says how it is made again, from the renamed files.
    first = json.loads((tmp_path / "away" / "summary.json").read_text())
    command = shlex.split(first["command"])[1:]
    again = clearlane(*command, "-o", "again", "--json", code=1).stdout
    assert json.loads(again)["what_if"]["headline"] == first["headline"]


def test_traffic_of_a_file_is_simulated_and_nobody_supposed(
    clearlane: Clearlane, tmp_path: Path
) -> None:
    demo = (ROOT / "experiments/demo-hot-spot.toml").read_text()
    groups = "[[traffic]]" + demo.split("[[traffic]]", 1)[1].split("[run]")[0]
    (tmp_path / "groups.toml").write_text("schema = 1\n" + groups)
    words = ["diagnose", *SITE, "--seeds", "1", "--control", "no", "--json"]
    said = clearlane(*words, "--traffic", "groups.toml", "-o", "a", code=1).stdout
    lines = {line["label"]: line["text"] for line in json.loads(said)["verdict"]["lines"]}
    assert lines["bottleneck"] == "most victims wait for leaf00[4] → storage01[1]"
    whole = str(ROOT / "experiments/demo-hot-spot.toml")
    problem = clearlane(*words, "--traffic", whole, "-o", "b", code=2).stderr
    assert "give a file that has [[traffic]] alone" in problem
    (tmp_path / "bad.toml").write_text('[[traffic]]\nname = "x"\n')
    problem = clearlane("diagnose", *SITE, "--traffic", "bad.toml", code=2).stderr
    assert "bad.toml:1: traffic.x lacks" in problem
    assert not (tmp_path / "runs").exists(), "nothing is half-written"


def test_half_a_table_is_not_taken_for_another(clearlane: Clearlane, tmp_path: Path) -> None:
    tables = (ROOT / "fixtures/site/site.dump_fts").read_text()
    (tmp_path / "half.fts").write_text(tables[:100_000])
    words = ["--lft", "half.fts", "--hot", "storage01", "--seeds", "1", "--control", "no", "--json"]
    said = json.loads(clearlane("diagnose", FABRIC, *words, "-o", "half", code=1).stdout)
    labels = [line["label"] for line in said["verdict"]["lines"]]
    assert labels[0] == "fault" and "helps" not in labels and "what if" in labels, labels


def test_swapped_files_are_told(clearlane: Clearlane) -> None:
    problem = clearlane("diagnose", SITE[2], "--lft", FABRIC, code=2).stderr
    assert "has forwarding tables and no cables; name the fabric file first" in problem
