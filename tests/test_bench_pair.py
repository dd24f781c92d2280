"""Comparisons of two simulators: what is computed, and the script on made-up binaries."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from conftest import ROOT


def load() -> ModuleType:
    """scripts/bench-pair as a module; its name has no ending."""
    path = str(ROOT / "scripts/bench-pair")
    spec = importlib.util.spec_from_loader("bench_pair", SourceFileLoader("bench_pair", path))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    # Data classes look their module up.
    sys.modules["bench_pair"] = module
    spec.loader.exec_module(module)
    return module


PAIR = load()


def runs(*pairs: tuple[int, float]) -> list[object]:
    return [PAIR.Difference(hops, seconds) for hops, seconds in pairs]


def test_a_difference_is_free_of_what_both_runs_spend() -> None:
    found = PAIR.difference(PAIR.Run(1_000_000, 0.75), PAIR.Run(5_000_000, 1.75))
    assert (found.hops, found.seconds, found.rate) == (4_000_000, 1.0, 4.0)


@pytest.mark.parametrize("long", [(1_000_000, 2.0), (2_000_000, 0.5)])
def test_a_long_run_that_is_no_longer_is_an_error(long: tuple[int, float]) -> None:
    with pytest.raises(PAIR.BenchError, match="too short"):
        PAIR.difference(PAIR.Run(1_000_000, 0.5), PAIR.Run(*long))


def test_ratios_are_taken_pair_by_pair() -> None:
    # The machine halves its speed after the first pair and again after the second.
    slower = runs((8_000_000, 1.0), (8_000_000, 2.0), (8_000_000, 4.0))
    faster = runs((8_000_000, 0.8), (8_000_000, 1.6), (8_000_000, 2.0))
    row = PAIR.Row("torus-8x8", (100, 300), slower, faster)
    assert row.ratios() == [1.25, 1.25, 2.0]
    assert row.same_work()
    assert PAIR.line(row).split()[:6] == ["torus-8x8", "4.00", "5.00", "1.250", "1.250", "2.000"]
    assert PAIR.line(row).endswith("100 to 300 us")


def test_other_work_is_said() -> None:
    row = PAIR.Row("torus-8x8", (100, 300), runs((400, 1.0)), runs((500, 1.0)))
    assert not row.same_work()
    assert "not the same work: 400 hops in A, 500 in B" in PAIR.line(row)


def test_the_mean_is_that_of_rows_with_the_same_work() -> None:
    def row(slower: tuple[int, float], faster: tuple[int, float]) -> object:
        return PAIR.Row("row", (1, 3), runs(slower), runs(faster))

    twice, half = row((400, 1.0), (400, 0.5)), row((400, 1.0), (400, 2.0))
    other_work = row((400, 1.0), (500, 0.1))
    said = PAIR.last_line([twice, half, other_work]).split()
    assert said == ["geometric", "mean", "of", "2", "1.000"]
    assert PAIR.last_line([other_work]).startswith("no row was compared")
    # Its figure stands below the medians.
    below = PAIR.heading().splitlines()[1]
    assert len(PAIR.last_line([twice])) == below.index("median") + len("median")


def test_columns_stand_below_their_heading() -> None:
    row = PAIR.Row("tree-648-1-lane", (2000, 6000), runs((10**7, 1.0)), runs((2 * 10**7, 1.0)))
    above, below = PAIR.heading().splitlines()
    text = PAIR.line(row)

    def end(within: str, word: str) -> int:
        return within.index(word) + len(word)

    assert end(above, "A") == end(text, "10.00")
    assert end(above, " B") == end(text, "20.00") == end(below, "CPU s")
    assert text[end(below, "min") - 5 : end(below, "max")] == "2.000   2.000  2.000"
    assert below.index("note") == text.index("2000 to 6000 us")


def test_spans_are_a_name_and_two_lengths() -> None:
    assert PAIR.parse_spans("torus-8x8 100 300\ntree 5 15\n") == {
        "torus-8x8": (100, 300),
        "tree": (5, 15),
    }
    for wrong in ["torus-8x8 100", "torus-8x8 100 x", "a b c d"]:
        with pytest.raises(PAIR.BenchError, match="--spans printed"):
            PAIR.parse_spans(wrong)


def test_rows_are_read_from_the_error_of_any_commit() -> None:
    said = "clearlane-bench: there is no row ``; rows are torus-8x8, tree-648-rc, check-3456\n"
    assert PAIR.parse_rows(said) == ["torus-8x8", "tree-648-rc", "check-3456"]
    with pytest.raises(PAIR.BenchError, match="said `write --once"):
        PAIR.parse_rows("write --once ROW MICROSECONDS\n")


def test_a_wait_is_told_in_seconds_or_minutes() -> None:
    assert [PAIR.duration(s) for s in [4.4, 89, 90, 600]] == ["4 s", "89 s", "2 min", "10 min"]


def made_up(folder: Path, name: str, rows: dict[str, int], cpu_ns: int = 20_000) -> Path:
    """A program that knows these rows, each with its packet-hops per microsecond of a span.

    It is busy for 0.3 s and for `cpu_ns` each such microsecond, by its own clock of CPU time: what
    it spends is the same on every machine, beside whatever else runs there.
    """
    text = f"""#!/usr/bin/env python3
import sys
import time
rows = {rows}
if sys.argv[1] == "--spans":
    wanted = [row for row in rows if row.startswith("rare") == ("--rare" in sys.argv)]
    print("".join(f"{{row}} 1000 3000\\n" for row in wanted), end="")
    sys.exit()
_, _, row, span = sys.argv
if row not in rows:
    known = ", ".join(rows)
    print(f"clearlane-bench: there is no row `{{row}}`; rows are {{known}}", file=sys.stderr)
    sys.exit(2)
if row == "broken":
    sys.exit("it broke")
while time.process_time_ns() < 300_000_000 + int(span) * {cpu_ns}:
    pass
print(rows[row] * int(span))
"""
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_rows_that_the_other_does_not_have_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = made_up(tmp_path, "old", {"one": 50})
    new = made_up(tmp_path, "new", {"one": 50, "two": 60})
    monkeypatch.setattr(PAIR, "this", lambda: ("this", new))
    out = tmp_path / "pairs.json"
    assert PAIR.main([str(old), "--runs", "3", "--json", str(out)]) == 0
    table, progress = capsys.readouterr()
    assert "two                    skipped: A has no such row" in table.splitlines()
    assert "one: pair 1 of 3, about" in progress and "one: pair 3 of 3, all" in progress
    written = json.loads(out.read_text())
    assert written["skipped"] == {"two": "A has no such row"}
    assert written["geometric_mean"] == pytest.approx(written["rows"]["one"]["ratio"])
    row = written["rows"]["one"]
    assert (row["hops"], row["span_us"]) == ([100_000, 100_000], [1000, 3000])
    assert [len(row[key]) for key in ["a", "b", "ratios"]] == [3, 3, 3]
    with pytest.raises(PAIR.BenchError, match="there is no row `three`; rows are one, two"):
        PAIR.main([str(old), "three"])


def test_rows_of_rare_settings_are_compared_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = made_up(tmp_path, "both", {"one": 50, "rare-two": 60})
    monkeypatch.setattr(PAIR, "this", lambda: ("this", both))
    for words, wanted, other in [([], "one", "rare-two"), (["--rare"], "rare-two", "one")]:
        assert PAIR.main([str(both), "--runs", "1", *words]) == 0
        table = capsys.readouterr().out
        assert f"\n{wanted} " in table and other not in table, words


def test_who_does_half_the_work_a_hop_is_twice_as_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = made_up(tmp_path, "old", {"one": 50}, cpu_ns=200_000)
    new = made_up(tmp_path, "new", {"one": 50}, cpu_ns=100_000)
    monkeypatch.setattr(PAIR, "this", lambda: ("this", new))
    out = tmp_path / "pairs.json"
    assert PAIR.main([str(old), "--runs", "3", "--json", str(out)]) == 0
    # 0.3 s of set-up left in it would make 1.5 of the ratio.
    assert 1.8 < json.loads(out.read_text())["rows"]["one"]["ratio"] < 2.2


def test_a_run_that_fails_is_said_and_the_other_rows_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = made_up(tmp_path, "both", {"broken": 1, "one": 50})
    monkeypatch.setattr(PAIR, "this", lambda: ("this", both))
    assert PAIR.main([str(both), "--runs", "1"]) == 1
    table = capsys.readouterr().out
    assert re.search(r"^broken +skipped: .* ended with 1 and said: it broke$", table, re.M), table
    assert re.search(r"^one +[0-9.]+ ", table, re.M), table


def test_a_name_that_is_no_commit_is_an_error() -> None:
    with pytest.raises(PAIR.BenchError, match="neither a commit"):
        PAIR.named("no-such-commit")
