"""Captures: what a run writes is what tshark and scapy read, and what the analysis counts.

A reader of the test's own, made of `struct` alone, stands between the two. It knows pcapng, pcap,
ERF, LRH, BTH and what follows it, and both CRCs.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import random
import re
import shlex
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether

from conftest import ROOT, Clearlane
from frames import BASE, ERF, LRH, Frame, frames, headers, pcap_records
from peers import run_bounded

COMMON = """schema = 1
fabric = {{ file = "{topology}" }}
subnet = {{ engine = "min-hop" }}
"""
CONGESTED = """name = "congested"
run = {{ duration = "1 ms", seeds = 1 }}
sim = {{ preset = "sdr-2011", buffer = "64 KiB" }}
control = {{ when = "iba-cc", iba-cc = {{ preset = "gran-2010" }} }}
variant = [
    {{ name = "rc" }},
    {{ name = "ud", traffic = [{{ name = "hot", transport = "ud", size = "1999 B" }}] }},
    {{ name = "acks", control = {{ iba-cc = {{ becn = "ack" }} }} }},
    {{ name = "lanes", subnet = {{ lanes = 2, lmc = 1 }}, traffic = [{{ name = "hot", sl = 1 }}] }},
]
[[traffic]]
name = "hot"
class = "hot"
pattern = {{ kind = "incast", to = "H4" }}
senders = {{ except = ["H4"] }}
load = 1.0
size = "10001 B"
"""
READS = """name = "reads"
run = {{ duration = "20 ms", ends = "programs", seeds = 1 }}
sim = {{ preset = "qdr", eager_max = "8 KiB" }}
variant = [{{ name = "reads" }}]
[[traffic]]
name = "solver"
class = "victim"
program = {{ kind = "pairwise-alltoall", size = "30001 B" }}
"""
VARIANTS = ["rc", "ud", "acks", "lanes", "reads"]
# Ports of a capture of ibdump's, which has room for four.
FEW = "H1,H4,S1:1,S2:1"
FORMATS = {"pcapng": [], "headers": ["--capture-headers"]}
FORMATS |= {form: [f"--capture-format={form}"] for form in ["ibdump", "roce"]}
OCCURRING = {
    "rc": {0x00, 0x01, 0x02, 0x11, 0x80},
    "ud": {0x64, 0x80},
    "acks": {0x00, 0x01, 0x02, 0x11},
    "lanes": {0x00, 0x01, 0x02, 0x11, 0x80},
    "reads": {0x04, 0x0C, 0x0D, 0x0E, 0x0F, 0x11},
}
"""Opcodes that each variant is there for."""
NAMES = """lrh.vl lrh.lver lrh.sl lrh.lnh lrh.dlid lrh.pktlen lrh.slid bth.opcode bth.se bth.m
    bth.padcnt bth.tver bth.p_key bth.destqp bth.a bth.psn aeth.syndrome aeth.syndrome.opcode
    aeth.msn deth.q_key deth.srcqp reth.va reth.r_key reth.dmalen"""
FIELDS = [f"infiniband.{name}" for name in NAMES.split()]


def tshark(file: Path, *arguments: str) -> list[str]:
    """What tshark prints of a file, line by line, with a configuration of nobody's."""
    command = ["tshark", "-n", "--disable-heuristic", "rpcrdma_infiniband", "-r", str(file)]
    env = dict(os.environ) | {"HOME": "/nonexistent"}
    done = run_bounded([*command, *arguments], env=env, cwd=Path("/"))
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split("\n")[:-1]


def shown(file: Path, fields: list[str], *arguments: str) -> list[dict[str, str]]:
    """What tshark says of fields of each packet; those that a packet has not are left out."""
    chosen = itertools.chain.from_iterable(("-e", field) for field in fields)
    lines = tshark(file, *arguments, "-T", "fields", *chosen)
    rows = [dict(zip(fields, line.split("\t"), strict=True)) for line in lines]
    return [{field: text for field, text in row.items() if text} for row in rows]


def shown_count(file: Path, condition: str, *arguments: str) -> int:
    """How many packets tshark's display filter lets through."""
    return len(tshark(file, *arguments, "-Y", condition, "-T", "fields", "-e", "frame.number"))


def nanoseconds(text: str) -> int:
    """A time as tshark prints it, `seconds.nanoseconds`."""
    seconds, fraction = text.split(".")
    assert len(fraction) == 9
    return int(seconds) * 10**9 + int(fraction)


Written = Callable[..., Path]


@pytest.fixture(scope="module")
def written(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """`written(variant, format, ports)`: the capture of that variant; each run is done once."""
    folder = tmp_path_factory.mktemp("captures")
    for name, text in [("congested", CONGESTED), ("reads", READS)]:
        topology = ROOT / "fixtures/parking-lot.topo"
        (folder / f"{name}.toml").write_text((COMMON + text).format(topology=topology))

    @functools.cache
    def run(experiment: str, form: str, ports: str) -> Path:
        out = folder / f"{experiment}-{form}-{ports}"
        command = [str(binary), "run", f"{experiment}.toml", "--out", str(out)]
        command += ["--capture", ports, *FORMATS[form]]
        done = run_bounded(command, env=os.environ, cwd=folder)
        assert done.returncode == 0, done.stderr[-2000:]
        return out

    def file(variant: str, form: str = "pcapng", ports: str = "") -> Path:
        ports = ports or (FEW if form == "ibdump" else "all")
        out = run("reads" if variant == "reads" else "congested", form, ports)
        return out / f"capture-{variant}.{'pcap' if form == 'ibdump' else 'pcapng'}"

    return file


def analysed(clearlane: Clearlane, *arguments: object) -> dict[str, Any]:
    """What the analysis found, as JSON."""
    return json.loads(clearlane("capture", *arguments, "--json").stdout)


def all_of(document: object, field: str) -> int:
    """The sum of the numbers of that name, wherever in a JSON document they are."""
    if isinstance(document, dict):
        own = document.get(field, 0)
        return own + sum(all_of(value, field) for value in document.values())
    return sum(all_of(value, field) for value in document) if isinstance(document, list) else 0


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("form", ["pcapng", "ibdump", "roce"])
def test_tshark_finds_no_fault_in_any_frame(form: str, variant: str, written: Written) -> None:
    """Every frame is one of InfiniBand and nothing about it is malformed, a warning or a note. A
    comment is the only thing that Wireshark may remark. Checksums of IP are right."""
    file = written(variant, form)
    fields = ["frame.protocols", "_ws.malformed", "_ws.expert.severity", "ip.checksum.status"]
    rows = shown(file, fields, "-o", "ip.check_checksum:TRUE")
    assert len(rows) == len(frames(file)) > 500
    comment = str(0x100000)
    for number, row in enumerate(rows, 1):
        protocols = row.pop("frame.protocols").split(":")
        assert "infiniband" in protocols and protocols[-1] in ("infiniband", "data"), number
        assert row.pop("_ws.expert.severity", comment) == comment, number
        assert row.pop("ip.checksum.status", "1") == "1", number
        assert not row, number
    assert {frame.opcode for frame in frames(file)} == {
        0x81 if form == "roce" and opcode == 0x80 else opcode for opcode in OCCURRING[variant]
    }


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("form", FORMATS)
def test_tshark_reads_the_fields_that_are_there(form: str, variant: str, written: Written) -> None:
    """Every field of LRH, BTH, DETH, AETH and RETH has the value that its bits have. Those of a
    capture without payload are there too, although Wireshark misses the CRCs."""
    file = written(variant, form)
    pairs = zip(frames(file), shown(file, FIELDS), strict=True)
    for number, (frame, row) in enumerate(pairs, 1):
        got = {field: int(text, 0) for field, text in row.items()}
        assert got == headers(frame), f"frame {number}"


@pytest.mark.parametrize("form", FORMATS)
def test_times_lengths_places_and_comments_are_what_tshark_says(
    form: str, written: Written
) -> None:
    """To the nanosecond. The time of an ERF record is that of the packet around it."""
    file = written("rc", form)
    fields = ["frame.time_epoch", "frame.len", "frame.cap_len", "frame.interface_name"]
    fields += ["frame.packet_flags_direction", "frame.comment", "erf.flags.cap"]
    for frame, row in zip(frames(file), shown(file, fields), strict=True):
        time_ns = frame.time_ns if frame.erf_ns is None else frame.erf_ns
        assert nanoseconds(row["frame.time_epoch"]) == time_ns
        assert int(row["frame.len"]) == frame.wire_bytes
        assert int(row["frame.cap_len"]) == len(frame.data)
        assert row.get("frame.comment", "") == frame.comment
        if form == "ibdump":
            assert frame.time_ns == time_ns // 1000 * 1000
            assert int(row["erf.flags.cap"], 0) == frame.interface
        else:
            assert frame.time_ns == time_ns
            assert row["frame.interface_name"] == frame.name
            assert int(row["frame.packet_flags_direction"], 0) == frame.direction
    times = [frame.time_ns for frame in frames(file)]
    assert times == sorted(times) and times[-1] > times[0]


def test_all_formats_hold_the_same_packets(written: Written) -> None:
    """ibdump's file has the frames of the pcapng file, and headers are how those begin."""
    for variant in VARIANTS:
        few = frames(written(variant, ports=FEW))
        for frame, erf in zip(few, frames(written(variant, "ibdump")), strict=True):
            assert (erf.data, erf.erf_ns) == (frame.data, frame.time_ns)
            assert erf.interface == frame.interface
        whole = frames(written(variant))
        for frame, short in zip(whole, frames(written(variant, "headers")), strict=True):
            assert frame.data.startswith(short.data) and len(short.data) == frame.after
            assert short.wire_bytes == frame.wire_bytes == len(frame.data)
            assert (short.time_ns, short.comment) == (frame.time_ns, frame.comment)


def test_roce_has_the_same_packets_with_marks_in_the_header_of_ip(written: Written) -> None:
    """Addresses are made of LIDs, the upper four bits of DSCP of the SL. ECN is CE where InfiniBand
    has FECN, which the BTH of RoCE has not. The rest of the BTH and the payload are the same."""
    marked = 0
    for variant in VARIANTS:
        pairs = zip(frames(written(variant)), frames(written(variant, "roce")), strict=True)
        for native, roce in pairs:
            lrh, ip = headers(native), roce.data[14:34]
            assert (roce.time_ns, roce.name) == (native.time_ns, native.name)
            ends = (10, lrh["infiniband.lrh.slid"], 10, lrh["infiniband.lrh.dlid"])
            assert struct.unpack_from(">BxHBxH", ip, 12) == ends
            assert ip[1] >> 4 == lrh["infiniband.lrh.sl"]
            assert struct.unpack_from(">HHH", roce.data, 36) == (4791, len(roce.data) - 34, 0)
            marked += native.fecn
            assert ip[1] & 3 == (0 if native.is_cnp else 3 if native.fecn else 2)
            bth = bytearray(native.transport[:-6])
            bth[4] &= 0x7F
            if native.is_cnp:
                bth[0], bth[BASE:] = 0x81, bytes(16)
            assert roce.transport[:-4] == bytes(bth)
    assert marked > 100


def test_cnps_have_the_bytes_of_the_annex(written: Written) -> None:
    """Opcode 0x80, BECN alone, and zeros but for the partition and the queue pair that is to slow
    down. That is the one which ACKs on the same way go to."""
    file = written("rc")
    ways: dict[tuple[int, int], set[int]] = {}
    for frame in frames(file):
        at = headers(frame)
        if frame.opcode == 0x11:
            ends = (at["infiniband.lrh.slid"], at["infiniband.lrh.dlid"])
            ways.setdefault(ends, set()).add(at["infiniband.bth.destqp"])
    cnps = [frame for frame in frames(file) if frame.is_cnp]
    assert len(cnps) > 100
    for frame in cnps:
        at = headers(frame)
        [pair] = ways[at["infiniband.lrh.slid"], at["infiniband.lrh.dlid"]]
        bth = bytes.fromhex("8000ffff40") + pair.to_bytes(3) + bytes(4)
        assert (len(frame.data), frame.transport[:BASE]) == (26, bth)
    raw = shown(file, ["infiniband.bth"], "-Y", "infiniband.bth.opcode == 0x80")
    assert [row["infiniband.bth"] for row in raw] == [f.transport[:BASE].hex() for f in cnps]


def test_fecn_and_becn_occur_where_they_may(written: Written) -> None:
    """FECN is in packets with data alone. BECN is in CNPs, or in ACKs where it is to ride on
    them."""
    for variant, carrier in [("rc", {0x80}), ("ud", {0x80}), ("acks", {0x11})]:
        read = frames(written(variant))
        assert {frame.opcode for frame in read if frame.becn} == carrier
        assert {frame.opcode for frame in read if frame.fecn} <= {0x00, 0x01, 0x02, 0x64}
        assert sum(frame.fecn for frame in read) > 50
        assert not any(frame.transport[4] & 0x3F for frame in read)


def test_directions_lanes_and_comments_tell_the_simulated_port(written: Written) -> None:
    """A host's port sends what has its LID. Packets of service level 1 are on lane 1. Comments
    have the queue, the CCTI and the path."""
    for frame in frames(written("rc")):
        assert frame.direction in (1, 2)
        if frame.name.startswith("H"):
            is_own = frame.name == f"H{headers(frame)['infiniband.lrh.slid']}[1]"
            assert is_own == (frame.direction == 2)
    read = frames(written("lanes"))
    routes = [headers(frame) for frame in read]
    assert {(at["infiniband.lrh.vl"], at["infiniband.lrh.sl"]) for at in routes} == {(1, 1)}
    parts = itertools.chain.from_iterable(frame.comment.split(", ") for frame in read)
    assert {part.split()[0] for part in parts if part} == {"queue", "CCTI", "path"}


@pytest.mark.parametrize("form", ["pcapng", "roce"])
def test_the_names_of_a_run_are_those_of_its_captures(
    form: str, written: Written, clearlane: Clearlane
) -> None:
    """The file of hosts gives every address of every variant's capture the name of its host."""
    for variant in ["rc", "ud", "acks", "lanes"]:
        file = written(variant, form)
        flows = analysed(clearlane, file, "--names", file.with_suffix(".hosts"))["flows"]
        assert {flow["source_name"] for flow in flows} == {"H1", "H2", "H3", "H5"}, variant
        assert {flow["destination_name"] for flow in flows} == {"H4"}, variant


REQUESTS, RESPONSES = {0x00, 0x01, 0x02, 0x04, 0x0C}, {0x0D, 0x0E, 0x0F}
BEGINNING, ENDING = {0x00, 0x04, 0x0C, 0x0D}, {0x02, 0x04, 0x0C, 0x0F}


@pytest.mark.parametrize("variant", ["rc", "acks", "lanes", "reads"])
def test_connections_are_numbered_and_messages_are_whole(variant: str, written: Written) -> None:
    """At each port the PSNs of a connection follow each other. A message is First, Middle and Last,
    or Only. All of its packets but the last are full, and the last has what is left and its pads:
    an RDMA READ brings as many bytes as were asked for."""
    bytes_all = 30001 if variant == "reads" else 10001
    flows: dict[tuple[object, ...], list[Frame]] = {}
    for frame in frames(written(variant)):
        if frame.opcode in REQUESTS | RESPONSES:
            at = headers(frame)
            ends = (at["infiniband.lrh.slid"], at["infiniband.lrh.dlid"])
            pair = (at["infiniband.bth.destqp"], frame.opcode in REQUESTS)
            flows.setdefault((frame.interface, *ends, *pair), []).append(frame)
            assert at.get("infiniband.reth.dmalen", bytes_all) == bytes_all
    assert len(flows) >= 12
    for key, flow in flows.items():
        psns = [headers(frame)["infiniband.bth.psn"] for frame in flow]
        assert psns == [(psns[0] + place) % 2**24 for place in range(len(psns))], key
        is_open = False
        for frame in flow:
            assert is_open != (frame.opcode in BEGINNING), key
            is_open = frame.opcode not in ENDING
            pads = headers(frame)["infiniband.bth.padcnt"]
            payload = len(frame.data) - frame.after - 6 - pads
            if frame.opcode not in (0x04, 0x0C):
                assert payload == (2048 if is_open else bytes_all % 2048), (key, frame.opcode)


def shifted(value: int) -> int:
    """What a byte does to the variant CRC: generator 0x100B, bits reflected (IBA vol. 1, 7.8.2)."""
    for _ in range(8):
        value = value >> 1 ^ (0xD008 if value & 1 else 0)
    return value


VARIANT_TABLE = [shifted(value) for value in range(256)]


def variant_crc(data: bytes) -> bytes:
    """The CRC that ends a packet, of its bytes from the LRH to the invariant CRC."""
    register = 0xFFFF
    for byte in data:
        register = register >> 8 ^ VARIANT_TABLE[(register ^ byte) & 0xFF]
    return struct.pack("<H", register ^ 0xFFFF)


def invariant_crc(data: bytes) -> bytes:
    """The CRC before that, of the bytes from the LRH to the end of the payload. What switches and
    routers may change counts as ones (IBA vol. 1, 7.8.1)."""
    masked = bytearray(data)
    if data[1] & 3 == 2:
        masked[0] |= 0xF0
        bth = LRH
    else:
        assert data[1] & 3 == 3
        masked[:LRH] = b"\xff" * LRH
        masked[LRH] |= 0x0F
        masked[LRH + 1 : LRH + 4] = b"\xff" * 3
        masked[LRH + 7] = 0xFF
        bth = LRH + 40
    masked[bth + 4] = 0xFF
    return struct.pack("<I", zlib.crc32(masked))


def check_crcs(packet: bytes) -> None:
    """Fails unless both CRCs of a packet of InfiniBand are right."""
    assert invariant_crc(packet[:-6]) == packet[-6:-2]
    assert variant_crc(packet[:-2]) == packet[-2:]


def test_needs_shared_the_second_implementation_of_both_crcs_is_right(shared: Path) -> None:
    """It agrees with hardware on every packet of a real capture, with a GRH and without."""
    records = pcap_records((shared / "data/captures/softroce-demo_infiniband.pcap").read_bytes())
    nexts: Counter[int] = Counter()
    for _, _, _, record in records:
        [wire] = struct.unpack_from(">H", record, 14)
        packet = record[ERF : ERF + wire]
        nexts[packet[1] & 3] += 1
        check_crcs(packet)
    assert nexts == {2: 37, 3: 6}


@pytest.mark.parametrize("variant", VARIANTS)
def test_crcs_are_those_of_a_second_implementation(variant: str, written: Written) -> None:
    """Ours for InfiniBand, scapy's for RoCE."""
    for form in ["pcapng", "roce"]:
        packets = {frame.data for frame in frames(written(variant, form))}
        assert len(packets) > 100
        for packet in packets:
            if form == "pcapng":
                check_crcs(packet)
            else:
                base = Ether(packet)[BTH]
                assert base.compute_icrc(b"") == packet[-4:] == struct.pack(">I", base.icrc)


@pytest.mark.parametrize("opcode", [0x00, 0x11, 0x80])
@pytest.mark.parametrize("form", ["pcapng", "ibdump", "roce"])
def test_a_changed_bit_is_a_wrong_crc(
    form: str, opcode: int, written: Written, clearlane: Clearlane
) -> None:
    """`--crc` checks every packet: it finds all of a written file right, and one of which either
    CRC was changed wrong, be it one with data, an ACK or a CNP."""
    file = written("rc", form, "H4")
    raw = file.read_bytes()
    opcode = 0x81 if form == "roce" and opcode == 0x80 else opcode
    packet = [frame.data for frame in frames(file) if frame.opcode == opcode][9]
    invariant, last = bytearray(packet), bytearray(packet)
    invariant[-3] ^= 0x10
    last[-1] ^= 0x10
    if form != "roce":
        invariant[-2:] = variant_crc(invariant[:-2])
    for changed, wrong in [(packet, 0), (invariant, 1), (last, 1)]:
        (clearlane.folder / "changed").write_bytes(raw.replace(packet, changed, 1))
        found = analysed(clearlane, "changed", "--crc")
        [point] = found["points"]
        assert point["checked_crcs"] == point["packets"] > 200
        assert sum(point["wrong_crcs"] for point in found["points"]) == wrong


@pytest.fixture
def script(clearlane: Clearlane) -> Path:
    """The post-dissector in a file."""
    file = clearlane.folder / "clearlane.lua"
    file.write_text(clearlane("capture", "--post-dissector").stdout)
    return file


@pytest.mark.parametrize("variant", ["rc", "acks"])
@pytest.mark.parametrize("form", FORMATS)
def test_the_post_dissector_shows_marks_and_notifications(
    form: str, variant: str, written: Written, script: Path
) -> None:
    """Its fields in tshark are the bits of the packet, of all packets."""
    names = [f"clearlane.{name}" for name in ["fecn", "becn", "cnp", "ce", "marked"]]
    file = written(variant, form)
    rows = shown(file, [*names, "ip.dsfield.ecn"], "-X", f"lua_script:{script}")
    for frame, row in zip(frames(file), rows, strict=True):
        ce = row.pop("ip.dsfield.ecn", "0") == "3"
        assert not ce or form == "roce"
        bits = [frame.fecn, frame.becn, frame.is_cnp, ce, frame.fecn or ce]
        assert [row.get(name, "0") for name in names] == [str(int(bit)) for bit in bits]
    assert sum(row.get("clearlane.marked") == "1" for row in rows) > 50


@pytest.mark.parametrize("source", ["docs/capture.md", "the script"])
def test_examples_of_the_post_dissector_show_what_is_marked(
    source: str, written: Written, script: Path
) -> None:
    """The command that the documentation gives, and the script itself, filters marked packets."""
    text = script.read_text() if source == "the script" else (ROOT / source).read_text()
    [command] = re.findall(r"tshark (-X lua_script:clearlane.lua .*)", text)
    condition = shlex.split(command.partition("-Y")[2])[0]
    marked = sum(frame.fecn for frame in frames(written("rc")))
    assert shown_count(written("rc"), condition, "-X", f"lua_script:{script}") == marked


@pytest.mark.parametrize(
    ("name", "packets", "others"),
    [
        ("oferby_roce.pcap", 105, 18),
        ("softroce-demo_infiniband.pcap", 43, 0),
        ("softroce-demo_demo_capture.pcap", 0, 20),
    ],
)
def test_needs_shared_real_captures_are_counted(
    name: str, packets: int, others: int, shared: Path, clearlane: Clearlane
) -> None:
    """As many packets as tshark finds, and no CRC is wrong."""
    file = shared / "data/captures" / name
    # One side's UDP port is that of TFTP.
    assert shown_count(file, "infiniband", "--disable-protocol", "tftp") == packets
    found = analysed(clearlane, file, "--crc", "--management")
    assert sum(point["packets"] for point in found["points"]) == packets
    assert sum(point["not_rdma"] for point in found["points"]) == others
    assert [capture["records"] for capture in found["captures"]] == [packets + others]
    assert all(point["checked_crcs"] == point["packets"] for point in found["points"])
    assert all_of(found, "wrong_crcs") == 0
    assert not found["remarks"]
    said = "no packet of InfiniBand or RoCE" in clearlane("capture", file).stdout
    assert said == (packets == 0)


COUNTS = {
    "fecn": "clearlane.fecn == 1",
    "ce": "clearlane.ce == 1",
    "marked": "clearlane.marked == 1",
    "cnp": "clearlane.cnp == 1",
    "becn": "clearlane.becn == 1 && !(clearlane.cnp == 1)",
    "acks": "infiniband.bth.opcode == 17",
    "data_packets": "infiniband.bth.opcode <= 2 || infiniband.bth.opcode == 100",
}
"""Counts of flows, and what they are in tshark."""


@pytest.mark.parametrize("variant", ["rc", "ud", "acks"])
@pytest.mark.parametrize("form", ["pcapng", "ibdump", "roce"])
def test_totals_are_those_of_tshark(
    form: str, variant: str, written: Written, clearlane: Clearlane, script: Path
) -> None:
    """At the port of the congested host, which every flow passes."""
    file = written(variant, form, "H4")
    found = analysed(clearlane, file)
    ours = {field: all_of(found["flows"], field) for field in COUNTS}
    lua = f"lua_script:{script}"
    theirs = {field: shown_count(file, what, "-X", lua) for field, what in COUNTS.items()}
    assert ours == theirs
    assert ours["marked"] == ours["ce" if form == "roce" else "fecn"] > 40
    totals = json.loads((file.parent / "summary.json").read_text())["variants"]
    [run] = next(one for one in totals if one["name"] == variant)["runs"]
    assert ours["cnp"] == run["totals"]["cnps_injected"]
    assert ours["cnp" if variant != "acks" else "becn"] > 40


def test_places_have_the_packets_that_tshark_counts_there(
    written: Written, clearlane: Clearlane
) -> None:
    """By interface, of all ports of a fabric; no packet is lost or out of order on the way."""
    file = written("rc")
    found = analysed(clearlane, file)
    names = Counter(row["frame.interface_name"] for row in shown(file, ["frame.interface_name"]))
    assert {point["name"]: point["packets"] for point in found["points"]} == names
    assert len(names) == 12
    for field in ["missing", "psn_gaps", "reordered", "retransmitted"]:
        assert all_of(found["flows"], field) == 0


@pytest.mark.parametrize("form", FORMATS)
def test_a_pipe_is_analysed_as_the_file_is(
    form: str, written: Written, clearlane: Clearlane
) -> None:
    file = written("rc", form, "H4")
    command = ["sh", "-c", 'cat "$1" | "$2" capture - --json', "sh"]
    command += [str(file), str(clearlane.binary)]
    done = run_bounded(command, env=os.environ, cwd=clearlane.folder)
    assert done.returncode == 0, done.stderr
    printed = clearlane("capture", file, "--json").stdout
    assert done.stdout.replace("stdin", file.name) == printed


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_was_cut_is_analysed_up_to_there(
    form: str, written: Written, clearlane: Clearlane
) -> None:
    """What is left over is told in bytes, and is what follows the last whole packet."""
    file = written("rc", form, "H4")
    raw = file.read_bytes()
    whole = raw.index(frames(file)[300].data) - {"ibdump": 32, "roce": 28}.get(form, 44)
    (clearlane.folder / "cut").write_bytes(raw[: whole + 41])
    found = analysed(clearlane, "cut")
    [capture] = found["captures"]
    assert (capture["records"], capture["bytes_left_over"]) == (300, 41)
    assert sum(point["packets"] for point in found["points"]) == 300
    remark = "cut ends within a packet: 41 bytes behind the last whole one"
    assert remark in found["remarks"]
    assert remark in " ".join(clearlane("capture", "cut").stdout.split())


PCAPNG_BEGINNING = b"\n\r\r\n\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0"
PCAPNG_AS_TEXT = (PCAPNG_BEGINNING * 40).decode("latin-1").encode("utf-16")
"""A capture that an editor has saved."""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty; nothing was captured"),
        ("a text\n", "is no capture; give a pcap, pcapng or ERF file"),
        ("no capture of anything, " * 99, "is no capture; give a pcap, pcapng or ERF file"),
        (b"\x15" * 500, "is no capture; give a pcap, pcapng or ERF file"),
        (random.Random(1).randbytes(50_000), "is no capture; give a pcap, pcapng or ERF file"),
        (PCAPNG_AS_TEXT, "is no capture; give a pcap, pcapng or ERF file"),
    ],
)
def test_what_is_no_capture_is_refused_in_a_line(
    text: str | bytes, why: str, clearlane: Clearlane
) -> None:
    (clearlane.folder / "text").write_bytes(text.encode() if isinstance(text, str) else text)
    for arguments in [["text"], ["text", "--json"]]:
        done = clearlane("capture", *arguments, code=2)
        assert not done.stdout
        [line] = done.stderr.splitlines()
        assert line.startswith(f"clearlane: text {why}")


BASE_S, STEP_US = 1_700_000_000, 2551


def retimed(raw: bytes, time: Callable[[int], tuple[int, int, int]]) -> bytes:
    """A pcap file of ERF records with other times: seconds, microseconds and units of 2^-32 s."""
    out = bytearray(raw[:24])
    for place, (_, _, wire, record) in enumerate(pcap_records(raw)):
        seconds, micros, units = time(place)
        out += struct.pack("<4I", seconds, micros, len(record), wire)
        out += struct.pack("<II", units, seconds) + record[8:]
    return bytes(out)


def test_the_fast_clock_of_ibdump_is_corrected(written: Written, clearlane: Clearlane) -> None:
    """ibdump takes 4295 units of 2^-32 s for a microsecond, so its times run ahead by up to 7.6 us
    in each second. tshark shows them so; the times of the analysis are the microseconds."""

    def time(place: int) -> tuple[int, int, int]:
        seconds, micros = divmod(place * STEP_US + 123, 1_000_000)
        return BASE_S + seconds, micros, micros * 4295

    source = written("rc", "ibdump", "H4")
    file = clearlane.folder / "fast.pcap"
    file.write_bytes(retimed(source.read_bytes(), time))
    since = [place * STEP_US * 1000 for place in range(len(frames(source)))]
    start_ns = BASE_S * 10**9 + 123_000
    told = [nanoseconds(row["frame.time_epoch"]) for row in shown(file, ["frame.time_epoch"])]
    ahead = [at - start_ns - ns for at, ns in zip(told, since, strict=True)]
    assert max(ahead) > 7500 and 0 <= min(ahead) < 10
    found = analysed(clearlane, file)
    [point] = found["points"]
    assert (found["start_ns"], point["first_ns"]) == (start_ns, 0)
    assert point["last_ns"] == since[-1]
    spans: dict[str, tuple[int, int]] = {}
    for frame, ns in zip(frames(source), since, strict=True):
        lid = f"LID {headers(frame)['infiniband.lrh.slid']}"
        spans[lid] = (spans.get(lid, (ns, ns))[0], ns)
    del spans["LID 4"]
    flows = found["flows"]
    assert {flow["source"]: (flow["first_ns"], flow["last_ns"]) for flow in flows} == spans
    assert found["captures"][0]["corrected_times"] == len(since)
    [remark] = found["remarks"]
    assert f"{len(since)} times of ibdump corrected" in remark


def test_times_of_erf_that_are_right_stay(written: Written, clearlane: Clearlane) -> None:
    """The analysis of a file that a run wrote as ibdump's has the times of the pcapng file. No
    time in it was ibdump's."""
    native = analysed(clearlane, written("rc", "pcapng", "H4"))
    found = analysed(clearlane, written("rc", "ibdump", "H4"))
    for told in ["first_ns", "last_ns", "first_mark_ns", "gap_median_ns", "gap_max_ns", "rate_bps"]:
        assert [f[told] for f in found["flows"]] == [f[told] for f in native["flows"]]
    assert (found["start_ns"], found["slice_ns"]) == (native["start_ns"], native["slice_ns"])
    assert found["captures"][0]["corrected_times"] == 0
    assert found["remarks"] == []


def test_right_whole_microseconds_are_not_ibdumps(written: Written, clearlane: Clearlane) -> None:
    """Up to 30 us the units that ibdump makes of a time are those that it has: nothing is
    corrected, so nothing is to be told."""

    def time(place: int) -> tuple[int, int, int]:
        seconds, micros = divmod(place, 30)
        return BASE_S + seconds, micros + 1, -(-(micros + 1) * 2**32 // 10**6)

    file = clearlane.folder / "right.pcap"
    file.write_bytes(retimed(written("rc", "ibdump", "H4").read_bytes(), time))
    found = analysed(clearlane, file)
    assert found["captures"][0]["corrected_times"] == 0
    assert found["remarks"] == []
