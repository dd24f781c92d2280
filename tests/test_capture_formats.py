"""`clearlane capture` on the containers and link layers that other programs write."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether

from conftest import Clearlane
from test_capture import invariant_crc, variant_crc

SECONDS = 1_700_000_000
FIRST_US = 999_990
"""A second ends between the packets of a file."""
STEP_NS = 1000
COUNT = 20
"""Packets of each file, each to a queue pair of its own; each fourth is marked, each second goes
the other way."""
QUEUE_PAIR = 0x100
PAYLOAD = 64
ENDS = ("10.0.0.1", "10.0.0.2")


def payload_bytes(number: int) -> int:
    """Of a packet."""
    return PAYLOAD + 4 * number


def bth(number: int, *, fecn: bool = False) -> bytes:
    """An RC SEND Only, payload and room for a CRC."""
    head = struct.pack(">BBHII", 4, 0x40, 0xFFFF, fecn << 31 | QUEUE_PAIR + number, number)
    return head + bytes(payload_bytes(number)) + bytes(4)


def ends_of(number: int, first: bytes, second: bytes) -> bytes:
    """Source and destination of a packet."""
    return second + first if number % 2 else first + second


def udp(transport: bytes) -> bytes:
    """A datagram to port 4791."""
    return struct.pack(">HHHH", 49152, 4791, 8 + len(transport), 0) + transport


def ipv4(number: int) -> bytes:
    """RoCE v2 over IPv4, marked by CE."""
    data = udp(bth(number))
    ecn = 3 if number % 4 == 0 else 2
    ends = ends_of(number, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    return struct.pack(">BBHHHBBH", 0x45, ecn, 20 + len(data), 0, 0, 64, 17, 0) + ends + data


def ipv6(number: int) -> bytes:
    """RoCE v2 over IPv6, marked by CE."""
    data = udp(bth(number))
    ecn = 3 if number % 4 == 0 else 2
    ends = ends_of(number, *(bytes.fromhex("fd00" + "00" * 13 + end) for end in ["01", "02"]))
    return struct.pack(">IHBB", 6 << 28 | ecn << 20, len(data), 17, 64) + ends + data


def roce_v1(number: int) -> bytes:
    """GRH and BTH, marked by FECN."""
    data = bth(number, fecn=number % 4 == 0)
    ends = ends_of(number, *(bytes.fromhex("fe80" + "00" * 13 + end) for end in ["01", "02"]))
    return struct.pack(">IHBB", 6 << 28, len(data), 0x1B, 64) + ends + data


def ethernet(ethertypes: list[int], content: bytes) -> bytes:
    """A frame; ethertypes before the last are tags of VLAN 5."""
    *tags, last = ethertypes
    tagged = b"".join(struct.pack(">HH", tag, 5) for tag in tags)
    return bytes(12) + tagged + struct.pack(">H", last) + content


def sll(content: bytes, ethertype: int = 0x0800) -> bytes:
    """Linux' cooked capture."""
    return struct.pack(">HHHQH", 0, 1, 6, 0, ethertype) + content


def sll2(content: bytes, ethertype: int = 0x0800) -> bytes:
    """Linux' cooked capture, version 2."""
    return struct.pack(">HHIHBBQ", ethertype, 0, 3, 1, 0, 6, 0) + content


def behind_tag(content: bytes) -> bytes:
    """What follows the ethertype of a tag of VLAN 5."""
    return struct.pack(">HH", 5, 0x0800) + content


def time_ns(number: int) -> int:
    """When a packet was captured, since 1970."""
    return SECONDS * 10**9 + FIRST_US * 1000 + number * STEP_NS


def fine_ns(number: int) -> int:
    """The same, with nanoseconds that are no microseconds."""
    return time_ns(number) + 37 * number


def tenths_us(number: int) -> int:
    """The same, in whole units of 100 ns."""
    return time_ns(number) + number % 10 * 100


def pcap(
    frames: list[bytes],
    link: int = 1,
    *,
    order: str = "<",
    magic: int = 0xA1B23C4D,
    at: Callable[[int], int] = time_ns,
    kept: int = 65535,
) -> bytes:
    """A pcap file, in nanoseconds or microseconds by its magic."""
    unit = 1 if magic == 0xA1B23C4D else 1000
    text = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, link)
    for number, frame in enumerate(frames):
        seconds, below = divmod(at(number), 10**9)
        cut = frame[:kept]
        text += struct.pack(order + "IIII", seconds, below // unit, len(cut), len(frame)) + cut
    return text


def padded(data: bytes) -> bytes:
    """Filled up to words."""
    return data + bytes(-len(data) % 4)


def block(order: str, kind: int, body: bytes) -> bytes:
    """A block of pcapng."""
    length = 12 + len(body)
    return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", length)


def option(order: str, code: int, value: bytes) -> bytes:
    """An option of a block."""
    return struct.pack(order + "HH", code, len(value)) + padded(value)


def section(order: str) -> bytes:
    """The header of a section."""
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(
    order: str, *options: tuple[int, bytes], name: str = "eth0", link: int = 1, snap: int = 0
) -> bytes:
    """An interface with these options, one that nobody knows before them."""
    known = option(order, 0x7FFF, b"odd length.")
    known += b"".join(option(order, code, value) for code, value in options)
    known += option(order, 2, name.encode()) + option(order, 0, b"")
    return block(order, 1, struct.pack(order + "HHI", link, 0, snap) + known)


def begun(order: str, *options: tuple[int, bytes]) -> bytes:
    """A section of one interface with these options."""
    return section(order) + interface(order, *options)


def enhanced(order: str, number: int, units: int, frame: bytes, place: int = 0) -> bytes:
    """An enhanced packet block, a comment and an option that nobody knows behind it."""
    length = len(frame)
    head = struct.pack(order + "5I", place, units >> 32, units & 0xFFFFFFFF, length, length)
    known = option(order, 1, b"comment") + option(order, 0x7FFF, bytes(number % 5))
    return block(order, 6, head + padded(frame) + known + option(order, 0, b""))


FRAMES = [ethernet([0x0800], ipv4(number)) for number in range(COUNT)]


def pcapng(order: str, *options: tuple[int, bytes], units: Callable[[int], int]) -> bytes:
    """A pcapng file of the frames, blocks of a local type between them."""
    text = begun(order, *options)
    for number, frame in enumerate(FRAMES):
        text += enhanced(order, number, units(number), frame)
        text += block(order, 0x80000BAD, bytes(4 * (number % 3)))
    return text


def analysed(clearlane: Clearlane, raw: bytes, *flags: str) -> dict[str, Any]:
    """What is found in a file."""
    (clearlane.folder / "file").write_bytes(raw)
    return json.loads(clearlane("capture", "file", "--json", *flags).stdout)


def is_found(
    found: dict[str, Any],
    ends: tuple[str, str] = ENDS,
    *,
    at: Callable[[int], int] = time_ns,
    numbers: Iterable[int] = range(COUNT),
) -> None:
    """Each packet, from whom it is to whom, whether it is marked, and when it was captured."""
    keys = ["queue_pair", "source", "destination", "data_packets", "marked", "payload_bytes"]
    seen = [
        (*(flow[key] for key in keys), found["start_ns"] + flow["first_ns"])
        for flow in sorted(found["flows"], key=lambda flow: flow["queue_pair"])
    ]
    assert seen == [
        (
            QUEUE_PAIR + number,
            *(ends[::-1] if number % 2 else ends),
            1,
            int(number % 4 == 0),
            payload_bytes(number),
            at(number),
        )
        for number in numbers
    ]


LINKS = {
    "one VLAN tag": (1, [ethernet([0x8100, 0x0800], ipv4(n)) for n in range(COUNT)], ENDS),
    "one tag of a provider": (
        1,
        [ethernet([0x88A8, 0x0800], ipv4(n)) for n in range(COUNT)],
        ENDS,
    ),
    "a tag and RoCE v1": (
        1,
        [ethernet([0x8100, 0x8915], roce_v1(n)) for n in range(COUNT)],
        ("fe80::1", "fe80::2"),
    ),
    "two tags and IPv6": (
        1,
        [ethernet([0x88A8, 0x8100, 0x86DD], ipv6(n)) for n in range(COUNT)],
        ("fd00::1", "fd00::2"),
    ),
    "two VLAN tags": (
        1,
        [ethernet([0x88A8, 0x8100, 0x0800], ipv4(n)) for n in range(COUNT)],
        ENDS,
    ),
    "IPv6": (1, [ethernet([0x86DD], ipv6(n)) for n in range(COUNT)], ("fd00::1", "fd00::2")),
    "RoCE v1": (1, [ethernet([0x8915], roce_v1(n)) for n in range(COUNT)], ("fe80::1", "fe80::2")),
    "Linux cooked": (113, [sll(ipv4(n)) for n in range(COUNT)], ENDS),
    "Linux cooked 2": (276, [sll2(ipv4(n)) for n in range(COUNT)], ENDS),
    "Linux cooked, a tag": (
        113,
        [sll(behind_tag(ipv4(n)), 0x8100) for n in range(COUNT)],
        ENDS,
    ),
    "Linux cooked 2, a tag": (
        276,
        [sll2(behind_tag(ipv4(n)), 0x8100) for n in range(COUNT)],
        ENDS,
    ),
}


@pytest.mark.parametrize("name", LINKS)
def test_what_lies_around_a_packet_is_taken_off(name: str, clearlane: Clearlane) -> None:
    link, frames, ends = LINKS[name]
    is_found(analysed(clearlane, pcap(frames, link)), ends)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_pcap_of_either_byte_order_and_unit(order: str, magic: int, clearlane: Clearlane) -> None:
    is_found(analysed(clearlane, pcap(FRAMES, order=order, magic=magic)))


@pytest.mark.parametrize("order", "<>")
def test_pcap_keeps_nanoseconds(order: str, clearlane: Clearlane) -> None:
    is_found(analysed(clearlane, pcap(FRAMES, order=order, at=fine_ns)), at=fine_ns)


UNITS: dict[str, tuple[list[tuple[int, bytes]], Callable[[int], int], int]] = {
    "microseconds": ([], time_ns, 10**6),
    "microseconds by option": ([(9, b"\x06")], time_ns, 10**6),
    "100 ns": ([(9, b"\x07")], tenths_us, 10**7),
    "nanoseconds": ([(9, b"\x09")], fine_ns, 10**9),
    "100 ps": ([(9, b"\x0a")], fine_ns, 10**10),
    "2^-20 s": ([(9, b"\x94")], time_ns, 2**20),
    "2^-32 s": ([(9, b"\xa0")], fine_ns, 2**32),
}
"""Options of an interface, times that such units can tell, and units in a second."""


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("name", UNITS)
def test_pcapng_of_either_byte_order_and_any_unit(
    order: str, name: str, clearlane: Clearlane
) -> None:
    """Units are rounded up, times that are told of them down."""
    options, at, second = UNITS[name]
    raw = pcapng(order, *options, units=lambda n: -(-at(n) * second // 10**9))
    told = (lambda n: -(-at(n) * second // 10**9) * 10**9 // second) if second == 2**20 else at
    is_found(analysed(clearlane, raw), at=told)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("offset", [SECONDS, -SECONDS])
def test_seconds_of_an_offset_are_added(offset: int, order: str, clearlane: Clearlane) -> None:
    options = [(9, b"\x09"), (14, struct.pack(order + "q", offset))]
    raw = pcapng(order, *options, units=lambda n: fine_ns(n) - offset * 10**9)
    is_found(analysed(clearlane, raw), at=fine_ns)


@pytest.mark.parametrize("orders", ["<>", "><"])
def test_a_section_has_its_own_byte_order_and_interfaces(
    orders: str, clearlane: Clearlane
) -> None:
    """The second section's interface 0 is in microseconds, the first one's in nanoseconds."""
    raw, half = b"", COUNT // 2
    for order, resolution, first in zip(orders, [9, 6], [0, half], strict=True):
        raw += begun(order, (9, bytes([resolution])))
        for number in range(first, first + half):
            units = time_ns(number) // 10 ** (9 - resolution)
            raw += enhanced(order, number, units, FRAMES[number])
    found = analysed(clearlane, raw)
    is_found(found)
    assert [point["packets"] for point in found["points"]] == [half, half]


def test_interfaces_have_names_and_units_of_their_own(clearlane: Clearlane) -> None:
    names = ["eth0", "eth1", "bond0"]
    seconds = [10**6, 10**9, 2**32]
    raw = section("<") + interface("<", name=names[0])
    raw += interface("<", (9, b"\x09"), name=names[1]) + interface("<", (9, b"\xa0"), name=names[2])
    for number, frame in enumerate(FRAMES):
        units = -(-time_ns(number) * seconds[number % 3] // 10**9)
        raw += enhanced("<", number, units, frame, number % 3)
    found = analysed(clearlane, raw)
    is_found(found)
    counts = {name: len(range(place, COUNT, 3)) for place, name in enumerate(names)}
    assert {point["name"]: point["packets"] for point in found["points"]} == counts
    places = {flow["queue_pair"] - QUEUE_PAIR: flow["seen_at"] for flow in found["flows"]}
    assert places == {number: names[number % 3] for number in range(COUNT)}


def test_packet_blocks_of_old(clearlane: Clearlane) -> None:
    raw = begun("<", (9, b"\x09"))
    for number, frame in enumerate(FRAMES):
        units = time_ns(number)
        high, low = units >> 32, units & 0xFFFFFFFF
        head = struct.pack("<HHIIII", 0, 0, high, low, len(frame), len(frame))
        raw += block("<", 2, head + padded(frame))
    is_found(analysed(clearlane, raw))


def simple(frame: bytes, kept: int = 65535) -> bytes:
    """A simple packet block."""
    return block("<", 3, struct.pack("<I", len(frame)) + padded(frame[:kept]))


@pytest.mark.parametrize("places", [{7}, {7, 8}, {COUNT - 1}])
def test_a_simple_packet_block_has_the_time_of_the_packet_before(
    places: set[int], clearlane: Clearlane
) -> None:
    raw = begun("<", (9, b"\x09"))
    for number, frame in enumerate(FRAMES):
        is_simple = number in places
        raw += simple(frame) if is_simple else enhanced("<", number, fine_ns(number), frame)
    last = min(places) - 1
    is_found(analysed(clearlane, raw), at=lambda n: fine_ns(last if n in places else n))


def test_a_simple_packet_block_is_cut_at_the_snap_length(clearlane: Clearlane) -> None:
    """What fills it up to words is no part of the packet."""
    raw = section("<") + interface("<", snap=53)
    raw += b"".join(simple(frame, 53) for frame in FRAMES)
    [point] = analysed(clearlane, raw)["points"]
    assert (point["packets"], point["cut"]) == (0, COUNT)


def native(number: int) -> bytes:
    """A frame of InfiniBand between LID 1 and LID 2, marked by FECN."""
    data = bth(number, fecn=number % 4 == 0)
    words = (8 + len(data)) // 4
    lids = ends_of(number, b"\0\1", b"\0\2")
    return struct.pack(">BB2sH2s", 0, 2, lids[2:], words, lids[:2]) + data + bytes(2)


def erf(units: int, packet: bytes, extensions: int = 0) -> bytes:
    """An ERF record of InfiniBand with so many extension headers."""
    more = 0x80 if extensions else 0
    record = 16 + 8 * extensions + len(packet)
    head = struct.pack("<QBB", units, 21 | more, 4) + struct.pack(">HHH", record, 0, len(packet))
    for left in reversed(range(extensions)):
        head += bytes([0x83 if left else 0x03]) + bytes(7)
    return head + packet


def erf_units(number: int) -> int:
    """A time in units of 2^-32 s."""
    return -(-(fine_ns(number) << 32) // 10**9)


LIDS = ("LID 1", "LID 2")


@pytest.mark.parametrize("extensions", [0, 1, 3])
def test_erf_in_a_file_of_its_own(extensions: int, clearlane: Clearlane) -> None:
    raw = b"".join(erf(erf_units(n), native(n), extensions) for n in range(COUNT))
    found = analysed(clearlane, raw)
    is_found(found, LIDS, at=fine_ns)
    assert found["captures"][0]["format"] == "erf"


def ibdumps(number: int) -> bytes:
    """An ERF record with ibdump's time: 4295 units a microsecond, which carry into the next second
    at its end."""
    seconds, micros = divmod(time_ns(number) // 1000, 10**6)
    return erf((seconds << 32) + micros * 4295, native(number))


IBDUMPS = [ibdumps(number) for number in range(COUNT)]
AHEAD = 10**6 - FIRST_US
"""Packets whose time differs: the first microseconds of a second are right to the nanosecond."""


def test_the_last_microseconds_of_a_second_of_ibdump_are_corrected(clearlane: Clearlane) -> None:
    found = analysed(clearlane, pcap(IBDUMPS, 197, magic=0xA1B2C3D4))
    is_found(found, LIDS)
    assert found["captures"][0]["corrected_times"] == AHEAD


def test_the_clock_of_ibdump_is_corrected_in_a_pcapng_file_too(clearlane: Clearlane) -> None:
    raw = section("<") + interface("<", link=197)
    for number, record in enumerate(IBDUMPS):
        raw += enhanced("<", number, time_ns(number) // 1000, record)
    found = analysed(clearlane, raw)
    is_found(found, LIDS)
    assert found["captures"][0]["corrected_times"] == AHEAD


def v2(frame: bytes) -> bytes:
    """A frame of RoCE v2 with the CRC that scapy computes."""
    return frame[:-4] + Ether(frame)[BTH].compute_icrc(b"")


def v1(frame: bytes) -> bytes:
    """A frame of RoCE v1 with the CRC of a packet of InfiniBand with a GRH."""
    return frame[:-4] + invariant_crc(b"\x00\x03" + bytes(6) + frame[14:-4])


def local(frame: bytes) -> bytes:
    """A packet of InfiniBand with both CRCs."""
    whole = frame[:-6] + invariant_crc(frame[:-6])
    return whole + variant_crc(whole)


SEALED = {
    "RoCE v2": (1, [v2(frame) for frame in FRAMES]),
    "RoCE v2 over IPv6": (1, [v2(ethernet([0x86DD], ipv6(n))) for n in range(COUNT)]),
    "RoCE v2 with a tag": (1, [v2(ethernet([0x8100, 0x0800], ipv4(n))) for n in range(COUNT)]),
    "RoCE v1": (1, [v1(ethernet([0x8915], roce_v1(n))) for n in range(COUNT)]),
    "InfiniBand": (197, [erf(erf_units(n), local(native(n))) for n in range(COUNT)]),
}
"""Link type, and frames whose CRCs are right."""


@pytest.mark.parametrize("damaged", [set(), {3}, {0, 9, COUNT - 1}])
@pytest.mark.parametrize("carrier", SEALED)
def test_all_whole_packets_are_checked_and_the_damaged_ones_wrong(
    carrier: str, damaged: set[int], clearlane: Clearlane
) -> None:
    link, frames = SEALED[carrier]
    changed = [
        frame[:-10] + bytes([frame[-10] ^ 1]) + frame[-9:] if number in damaged else frame
        for number, frame in enumerate(frames)
    ]
    found = analysed(clearlane, pcap(changed, link), "--crc")
    [point] = found["points"]
    counts = [point[key] for key in ["packets", "checked_crcs", "wrong_crcs"]]
    assert counts == [COUNT, COUNT, len(damaged)]
    wrong = {flow["queue_pair"] - QUEUE_PAIR for flow in found["flows"] if flow["wrong_crcs"]}
    assert wrong == damaged


@pytest.mark.parametrize("carrier", SEALED)
def test_packets_that_were_cut_are_not_checked(carrier: str, clearlane: Clearlane) -> None:
    """Packet 8 is the longest that was kept as a whole."""
    link, frames = SEALED[carrier]
    found = analysed(clearlane, pcap(frames, link, kept=len(frames[8])), "--crc")
    [point] = found["points"]
    counts = [point[key] for key in ["packets", "checked_crcs", "wrong_crcs"]]
    assert counts == [COUNT, 9, 0]
