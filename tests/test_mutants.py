"""The list of mutants, and the script that makes them, on a made-up crate."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from conftest import ROOT


def load() -> ModuleType:
    """scripts/mutants as a module; its name has no ending."""
    path = str(ROOT / "scripts/mutants")
    spec = importlib.util.spec_from_loader("mutants", SourceFileLoader("mutants", path))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    # Data classes look their module up.
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    return module


MUTANTS = load()

CODE = """\
//! A shop.

/// The price of some things.
pub fn price(number: u32) -> u32 {
    if number >= 10 { number * 9 } else { number * 10 }
}

/// Pieces that are left.
pub fn left(mut number: u32) -> u32 {
    while number > 3 {
        number -= 3;
    }
    number
}

/// Pieces of two kinds.
pub mod pieces {
    /// Of a kind, so many.
    pub struct Apples<T>(pub T);
    /// Of another kind.
    pub struct Pears(pub u32);

    impl<T: Into<u32>> Apples<T> {
        /// Pieces that are left.
        pub fn left(self) -> u32 {
            self.0.into() * 10
        }
    }

    impl From<Pears> for u32 {
        fn from(pears: Pears) -> u32 {
            pears.left()
        }
    }

    impl Pears {
        const NONE: u32 = 0;

        fn left(self) -> u32 {
            self.0 + Self::NONE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(number: u32) -> u32 {
        super::price(number)
    }

    #[test]
    fn a_thing_costs_ten() {
        assert_eq!(price(3), 30);
    }

    #[test]
    fn at_most_three_are_left() {
        assert_eq!(left(8), 2);
    }
}
"""
# Seen by all tests of the crate, and by no unit test.
WIDE = "#[test]\nfn many_are_cheaper() {\n    assert_eq!(clearlane_shop::price(20), 180);\n}\n"


def entry(name: str, old: str, new: str, **more: object) -> str:
    """A mutant of the shop, as the list has it."""
    told = {
        "name": name,
        "item": "shop::price",
        "old": old,
        "new": new,
        "breaks": "It does.",
        "tests": ["-p", "clearlane-shop", "--lib"],
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in (told | more).items()]
    return "\n".join(["[[mutant]]", *lines, ""])


TEN = entry("ten", "number * 10", "number * 11")
NINE = entry("nine", "number * 9", "number * 8")
BOUND = entry("bound", ">= 10", "> 10")
LISTED = entry("bound", ">= 10", "> 10", survives="Nobody buys ten.")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of one crate, which the script takes for its own."""
    root, crate = tmp_path / "shop", tmp_path / "shop/crates/shop"
    (crate / "src").mkdir(parents=True)
    (crate / "tests").mkdir()
    (root / "Cargo.toml").write_text('[workspace]\nresolver = "3"\nmembers = ["crates/*"]\n')
    package = '[package]\nname = "clearlane-shop"\nversion = "0.1.0"\nedition = "2024"\n'
    (crate / "Cargo.toml").write_text(package)
    (crate / "src/lib.rs").write_text(CODE)
    (crate / "tests/wide.rs").write_text(WIDE)
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    monkeypatch.setattr(MUTANTS, "ROOT", root)
    monkeypatch.setattr(MUTANTS, "LIST", root / "mutants.toml")
    monkeypatch.setattr(MUTANTS, "TARGET", tmp_path / "target")
    monkeypatch.setattr(MUTANTS, "FOLDER", tmp_path / "target/mutants")
    return root


def run(shop: Path, *entries: str, words: tuple[str, ...] = ()) -> int:
    (shop / "mutants.toml").write_text("\n".join(entries))
    return MUTANTS.main([*words])


def test_the_list_is_well_formed_and_follows_the_code() -> None:
    mutants, known = MUTANTS.parse((ROOT / "tests/mutants.toml").read_text()), MUTANTS.Items(ROOT)
    assert len(mutants) >= 60
    crates = Counter(mutant.crate for mutant in mutants)
    assert min(crates[name] for name in ("congestion", "lab", "sim", "subnet")) >= 10, crates
    for mutant in mutants:
        place = known.place(mutant)
        assert mutant.applied(place) != place.file.read_bytes()
        assert mutant.tests[:2] == ("-p", mutant.package), mutant.name
        assert re.fullmatch(r"\S.*\.", mutant.breaks), mutant.name


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (TEN + TEN, "ten is there twice"),
        (TEN.replace("tests", "test"), "ten: lacks, or has without need, test, tests"),
        (entry("ten", "10", "10"), "ten: changes nothing"),
        (entry("ten", "a", "b", item="Cargo.toml"), "Cargo.toml is not a crate and a path in it"),
        ("[[mutant", "tests/mutants.toml: "),
    ],
)
def test_a_list_that_is_not_well_formed_is_told(text: str, error: str) -> None:
    with pytest.raises(MUTANTS.MutantError, match=error):
        MUTANTS.parse(text)


def test_mutants_are_killed_by_narrow_tests_then_by_all_or_survive(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shop / "table.json"
    assert run(shop, TEN, BOUND, NINE, words=("--json", str(out))) == 1
    table, progress = capsys.readouterr()
    assert re.search(r"^killed +\d+ s +ten +a_thing_costs_ten$", table, re.M), table
    assert re.search(r"^killed +\d+ s +nine +many_are_cheaper$", table, re.M), table
    survivor = r"^survived +\d+ s +bound +shop::price: It does\.$"
    assert re.search(survivor, table, re.M), table
    assert table.splitlines()[-1] == "3 mutants: 2 killed, 1 survived, 0 listed survivors"
    assert "2 of 3: bound" in progress and "all tests: nine" in progress
    written = json.loads(out.read_text())
    verdicts = {each["name"]: each["verdict"] for each in written["mutants"]}
    assert verdicts == {"ten": "killed", "nine": "killed", "bound": "survived"}
    # Not in the user's tree, and nothing of it is left in the copy.
    for tree in [shop, MUTANTS.FOLDER / "tree"]:
        assert (tree / "crates/shop/src/lib.rs").read_text() == CODE


def test_a_listed_survivor_is_expected_and_a_listed_one_that_is_killed_is_not(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shop, TEN, LISTED) == 0
    table = capsys.readouterr().out
    assert re.search(r"^listed +\d+ s +bound +Nobody buys ten\.$", table, re.M), table
    assert "2 mutants: 1 killed, 0 survived, 1 listed survivors" in table
    killed = entry("ten", "number * 10", "number * 11", survives="It is a thought.")
    assert run(shop, killed, LISTED, words=("ten",)) == 1
    assert re.search(r"^killed, listed +\d+ s +ten ", capsys.readouterr().out, re.M)


def test_a_mutant_that_hangs_is_killed(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MUTANTS, "HANG_SECONDS_MIN", 2)
    monkeypatch.setattr(MUTANTS, "HANG_TIMES", 1)
    assert run(shop, entry("hangs", "number -= 3;", "number -= 0;", item="shop::left")) == 0
    assert re.search(r"^killed +\d+ s +hangs +hang$", capsys.readouterr().out, re.M)


def test_an_item_is_found_by_as_much_of_its_path_as_tells_it_from_others(shop: Path) -> None:
    def found(item: str) -> str:
        (mutant,) = MUTANTS.parse(entry("some", "a", "b", item=item))
        return MUTANTS.Items(shop).place(mutant).parts()[1].decode()

    # A whole path is one, and parts of others do not matter.
    assert "while number > 3" in found("shop::left")
    assert "* 10" in found("shop::Apples::left") and "NONE" in found("shop::pieces::Pears::left")
    assert found("shop::NONE") == "const NONE: u32 = 0;"
    assert "pears.left()" in found("shop::from")
    # That of the tests is none.
    assert "number * 9" in found("shop::price")
    for item, told in [
        ("shop::pieces::left", "0 items of crate shop are named pieces::left, not one: none"),
        ("shop::eleven", "0 items"),
        ("stall::price", "0 items of crate stall"),
    ]:
        with pytest.raises(MUTANTS.MutantError, match=told):
            found(item)
    moved = CODE.replace("pub fn left(mut", "pub fn rest(mut")
    (shop / "crates/shop/src/lib.rs").write_text("pub mod all;\npub use all::*;\n")
    (shop / "crates/shop/src/all.rs").write_text(moved)
    assert "number * 9" in found("shop::price") and "* 10" in found("shop::Apples::left")
    told = "2 items of crate shop are named left, not one: all::pieces::Apples::left, "
    with pytest.raises(MUTANTS.MutantError, match=told):
        found("shop::left")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (entry("gone", "number * 12", "1"), "gone: .* has its old text 0 times and not once"),
        (entry("many", "number", "1"), "many: .* has its old text [0-9]+ times and not once"),
        (entry("wrong", "number * 9", '"9"'), "wrong does not build: error.*mismatched types"),
        (
            entry("idle", "number * 9", "1", tests=["-p", "clearlane-shop", "--lib", "none"]),
            "cargo test -p clearlane-shop --lib none runs no test",
        ),
    ],
)
def test_a_list_that_does_not_follow_the_code_is_an_error(
    shop: Path, text: str, error: str
) -> None:
    with pytest.raises(MUTANTS.MutantError, match=error):
        run(shop, text)
    assert (shop / "crates/shop/src/lib.rs").read_text() == CODE


def test_tests_that_fail_without_a_mutant_are_an_error(shop: Path) -> None:
    (shop / "crates/shop/src/lib.rs").write_text(CODE.replace("left(8), 2", "left(8), 1"))
    with pytest.raises(MUTANTS.MutantError, match="failed on the tree as it is"):
        run(shop, TEN)


def test_names_that_no_mutant_has_are_told(shop: Path) -> None:
    with pytest.raises(MUTANTS.MutantError, match="no mutant is named eleven"):
        run(shop, TEN, words=("eleven",))
