"""The judges can say no: without this, their yes to our tables would mean nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import readers
from peers import Ibsim, OpenSm, PeerError, ibdmchk


def ring(switches: int, rate: str = "4xQDR") -> str:
    """A netlist written by hand: switches in a ring, one host each, port 1 clockwise, port 2
    anticlockwise, port 3 the host."""
    parts = []
    for number in range(switches):
        host, after, before = 0x100 + number, (number + 1) % switches, (number - 1) % switches
        parts.append(
            f"vendid=0x1\ndevid=0x1\nsysimgguid=0x{host:x}\ncaguid=0x{host:x}\n"
            f'Ca\t1 "H-{host:016x}"\t\t# "host{number}"\n'
            f'[1]({host + 0x100:x})\t"S-{number + 1:016x}"[3]\t\t'
            f'# lid 0 lmc 0 "sw" lid 0 {rate}\n\n'
            f"vendid=0x1\ndevid=0x1\nsysimgguid=0x{number + 1:x}\n"
            f"switchguid=0x{number + 1:x}({number + 1:x})\n"
            f'Switch\t3 "S-{number + 1:016x}"\t\t# "sw{number}" base port 0 lid 0 lmc 0\n'
            f'[1]\t"S-{after + 1:016x}"[2]\t\t# "sw{after}" lid 0 {rate}\n'
            f'[2]\t"S-{before + 1:016x}"[1]\t\t# "sw{before}" lid 0 {rate}\n'
            f'[3]\t"H-{host:016x}"[1]({host + 0x100:x})\t\t# "host{number}" lid 0 {rate}\n\n'
        )
    return "".join(parts)


@pytest.fixture
def routed_ring(tmp_path: Path, opensm: Callable[..., OpenSm]) -> Path:
    """OpenSM's minhop tables of a ring of six: shortest paths, so there is a credit loop."""
    netlist = tmp_path / "ring.netlist"
    netlist.write_text(ring(6))
    return opensm(netlist, "minhop").folder


def test_ibdmchk_finds_the_credit_loop_of_a_ring(routed_ring: Path, tmp_path: Path) -> None:
    verdict = ibdmchk(routed_ring, tmp_path)
    assert verdict.paths == 6 * 5
    assert verdict.credit_loop and not verdict.no_credit_loop


def test_ibdmchk_finds_none_where_lanes_break_it(
    tmp_path: Path, opensm: Callable[..., OpenSm]
) -> None:
    """The same ring and paths, those through the last switch on a lane of their own."""
    netlist = tmp_path / "ring.netlist"
    netlist.write_text(ring(6))
    folder = opensm(netlist, "minhop", qos="TRUE").folder
    cabling = readers.subnet_lst((folder / "opensm-subnet.lst").read_text())
    tables = readers.fdbs((folder / "opensm.fdbs").read_text())
    lines = []
    for source in cabling.hosts:
        for target in cabling.hosts:
            if source != target:
                passed = readers.path(cabling, tables, source, target)
                wraps = any(switch == 6 for switch, _ in passed[1:-1])
                lines.append(f"0x{source:016x} {cabling.lids[target]} {int(wraps)}\n")
    sl_list = tmp_path / "psl.txt"
    sl_list.write_text("".join(lines))
    sl2vl = folder / "opensm-sl2vl.dump"
    verdict = ibdmchk(folder, tmp_path, sl_list=sl_list, sl2vl=sl2vl)
    assert verdict.no_credit_loop and not verdict.credit_loop, verdict.output


def test_ibdmchk_finds_a_forwarding_loop(routed_ring: Path, tmp_path: Path) -> None:
    cabling = readers.subnet_lst((routed_ring / "opensm-subnet.lst").read_text())
    lid = cabling.lids[cabling.named("host3")]
    tables = (routed_ring / "opensm.fdbs").read_text()
    # host3's LID goes clockwise at switch 1 and back at switch 2.
    edited = readers.edit_fdbs(tables, {(1, lid): 1, (2, lid): 2})
    broken = tmp_path / "loop.fdbs"
    broken.write_text(edited)
    verdict = ibdmchk(routed_ring, tmp_path, tables=broken)
    assert any("loop in LFT" in line for line in verdict.errors), verdict.output


def test_ibdmchk_finds_a_dead_end(routed_ring: Path, tmp_path: Path) -> None:
    cabling = readers.subnet_lst((routed_ring / "opensm-subnet.lst").read_text())
    lid = cabling.lids[cabling.named("host3")]
    tables = (routed_ring / "opensm.fdbs").read_text()
    broken = tmp_path / "dead.fdbs"
    # Port 3 of switch 2 leads to host1.
    broken.write_text(readers.edit_fdbs(tables, {(2, lid): 3}))
    verdict = ibdmchk(routed_ring, tmp_path, tables=broken)
    assert any("Dead end" in line for line in verdict.errors), verdict.output


def test_our_own_walk_finds_both_too(routed_ring: Path) -> None:
    cabling = readers.subnet_lst((routed_ring / "opensm-subnet.lst").read_text())
    tables = readers.fdbs((routed_ring / "opensm.fdbs").read_text())
    source, target = cabling.named("host0"), cabling.named("host3")
    lid = cabling.lids[target]
    assert len(readers.path(cabling, tables, source, target)) == 4
    looping = {guid: dict(row) for guid, row in tables.items()}
    looping[1][lid], looping[2][lid] = 1, 2
    with pytest.raises(AssertionError, match="a loop on the way"):
        readers.path(cabling, looping, source, target)
    looping[1][lid] = 3
    with pytest.raises(AssertionError, match="ends at host0"):
        readers.path(cabling, looping, cabling.named("host1"), target)


def test_a_netlist_ibsim_refuses_is_an_error_at_once(
    tmp_path: Path, ibsim: Callable[[Path], Ibsim]
) -> None:
    netlist = tmp_path / "bad.netlist"
    netlist.write_text(ring(3).replace("[3]", "[9]"))
    with pytest.raises(PeerError, match="did not take"), ibsim(netlist):
        pass


def test_a_tool_that_hangs_is_ended(tmp_path: Path, ibsim: Callable[[Path], Ibsim]) -> None:
    netlist = tmp_path / "ring.netlist"
    netlist.write_text(ring(3))
    with ibsim(netlist) as subnet, pytest.raises(PeerError, match="was not done after"):
        subnet.client(["sleep", "60"], limit_s=0.2)


def test_the_engine_that_fell_back_is_not_taken_for_the_one_asked(
    tmp_path: Path, ibsim: Callable[[Path], Ibsim]
) -> None:
    netlist = tmp_path / "ring.netlist"
    netlist.write_text(ring(6))
    with ibsim(netlist) as subnet:
        assert subnet.opensm({"routing_engine": "ftree"}).engine == "minhop"


def test_which_speeds_ibsim_keeps(tmp_path: Path, ibsim: Callable[[Path], Ibsim]) -> None:
    """Widths and speeds up to HDR come back as written; FDR10 and NDR do not, without a word."""
    kept = ["1xQDR", "2xEDR", "4xSDR", "4xDDR", "4xQDR", "4xFDR", "4xEDR", "4xHDR", "12xQDR"]
    changed = {"4xFDR10": "4xQDR", "4xNDR": "4xSDR"}
    for rate, expected in ({rate: rate for rate in kept} | changed).items():
        netlist = tmp_path / f"{rate}.netlist"
        netlist.write_text(ring(3, rate))
        with ibsim(netlist) as subnet:
            text = subnet.client(["ibnetdiscover"]).stdout
        rates = {line.split()[-1] for line in text.splitlines() if line.startswith("[")}
        assert rates == {expected}
