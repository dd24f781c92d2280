"""`clearlane capture` on the containers and link layers that other programs write."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Clearlane

SECONDS = 1_700_000_000
STEP_NS = 1000
COUNT = 20
"""Packets of each file; each fourth is marked."""
PAYLOAD = 64
ENDS = ("10.0.0.1", "10.0.0.2")


def bth(number: int, *, fecn: bool = False) -> bytes:
    """An RC SEND Only to queue pair 0x12, payload and a CRC that nobody checks."""
    head = struct.pack(">BBHII", 4, 0x40, 0xFFFF, (fecn << 31) | 0x12, number)
    return head + bytes(PAYLOAD) + bytes(4)


def udp(transport: bytes) -> bytes:
    """A datagram to port 4791."""
    return struct.pack(">HHHH", 49152, 4791, 8 + len(transport), 0) + transport


def ipv4(number: int) -> bytes:
    """RoCE v2 over IPv4, marked by CE."""
    data = udp(bth(number))
    ecn = 3 if number % 4 == 0 else 2
    ends = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    return struct.pack(">BBHHHBBH", 0x45, ecn, 20 + len(data), 0, 0, 64, 17, 0) + ends + data


def ipv6(number: int) -> bytes:
    """RoCE v2 over IPv6, marked by CE."""
    data = udp(bth(number))
    ecn = 3 if number % 4 == 0 else 2
    ends = bytes.fromhex("fd00" + "00" * 13 + "01" + "fd00" + "00" * 13 + "02")
    return struct.pack(">IHBB", 6 << 28 | ecn << 20, len(data), 17, 64) + ends + data


def roce_v1(number: int) -> bytes:
    """GRH and BTH, marked by FECN."""
    data = bth(number, fecn=number % 4 == 0)
    ends = bytes.fromhex("fe80" + "00" * 13 + "01" + "fe80" + "00" * 13 + "02")
    return struct.pack(">IHBB", 6 << 28, len(data), 0x1B, 64) + ends + data


def ethernet(ethertypes: list[int], content: bytes) -> bytes:
    """A frame; ethertypes before the last are tags of VLAN 5."""
    *tags, last = ethertypes
    tagged = b"".join(struct.pack(">HH", tag, 5) for tag in tags)
    return bytes(12) + tagged + struct.pack(">H", last) + content


def sll(content: bytes) -> bytes:
    """Linux' cooked capture."""
    return struct.pack(">HHHQH", 0, 1, 6, 0, 0x0800) + content


def sll2(content: bytes) -> bytes:
    """Linux' cooked capture, version 2."""
    return struct.pack(">HHIHBBQ", 0x0800, 0, 3, 1, 0, 6, 0) + content


def time_ns(number: int) -> int:
    """When a packet was captured, since 1970."""
    return SECONDS * 10**9 + number * STEP_NS


def pcap(
    frames: list[bytes], link: int = 1, *, order: str = "<", magic: int = 0xA1B23C4D
) -> bytes:
    """A pcap file, in nanoseconds or microseconds by its magic."""
    unit = 1 if magic == 0xA1B23C4D else 1000
    text = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, link)
    for number, frame in enumerate(frames):
        seconds, below = divmod(time_ns(number), 10**9)
        text += struct.pack(order + "IIII", seconds, below // unit, len(frame), len(frame)) + frame
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


def begun(order: str, *options: tuple[int, bytes], interfaces: int = 1) -> bytes:
    """A section of Ethernet interfaces with these options."""
    text = block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    known = b"".join(option(order, code, value) for code, value in options)
    known += option(order, 2, b"a name of some length") + option(order, 0, b"")
    interface = block(order, 1, struct.pack(order + "HHI", 1, 0, 0) + known)
    return text + interface * interfaces


def enhanced(order: str, number: int, units: int, frame: bytes, interface: int = 0) -> bytes:
    """An enhanced packet block, a comment and an option that nobody knows behind it."""
    length = len(frame)
    head = struct.pack(order + "5I", interface, units >> 32, units & 0xFFFFFFFF, length, length)
    known = option(order, 1, b"comment") + option(order, 0x7FFF, bytes(number % 5))
    return block(order, 6, head + padded(frame) + known + option(order, 0, b""))


FRAMES = [ethernet([0x0800], ipv4(number)) for number in range(COUNT)]


def pcapng(order: str, *options: tuple[int, bytes], units: Callable[[int], int]) -> bytes:
    """A pcapng file of the frames, blocks that nobody knows between them."""
    text = begun(order, *options)
    for number, frame in enumerate(FRAMES):
        text += enhanced(order, number, units(number), frame)
        text += block(order, 0x0BAD, bytes(4 * (number % 3)))
    return text


def analysed(clearlane: Clearlane, raw: bytes, *flags: str) -> dict[str, Any]:
    """What is found in a file."""
    (clearlane.folder / "file").write_bytes(raw)
    return json.loads(clearlane("capture", "file", "--json", *flags).stdout)


def is_found(found: dict[str, Any], ends: tuple[str, str] = ENDS, *, step: int = STEP_NS) -> None:
    """One flow, all packets, five marks, at the times they were captured."""
    [flow] = found["flows"]
    assert (flow["source"], flow["destination"]) == ends
    assert (flow["data_packets"], flow["marked"]) == (COUNT, COUNT // 4)
    assert flow["payload_bytes"] == COUNT * PAYLOAD
    assert flow["last_ns"] - flow["first_ns"] == (COUNT - 1) * step
    assert found["start_ns"] == time_ns(0)
    assert flow["missing"] == 0


LINKS = {
    "one VLAN tag": (1, [ethernet([0x8100, 0x0800], ipv4(n)) for n in range(COUNT)], ENDS),
    "two VLAN tags": (
        1,
        [ethernet([0x88A8, 0x8100, 0x0800], ipv4(n)) for n in range(COUNT)],
        ENDS,
    ),
    "IPv6": (1, [ethernet([0x86DD], ipv6(n)) for n in range(COUNT)], ("fd00::1", "fd00::2")),
    "RoCE v1": (1, [ethernet([0x8915], roce_v1(n)) for n in range(COUNT)], ("fe80::1", "fe80::2")),
    "Linux cooked": (113, [sll(ipv4(n)) for n in range(COUNT)], ENDS),
    "Linux cooked 2": (276, [sll2(ipv4(n)) for n in range(COUNT)], ENDS),
}


@pytest.mark.parametrize("name", LINKS)
def test_what_lies_around_a_packet_is_taken_off(name: str, clearlane: Clearlane) -> None:
    link, frames, ends = LINKS[name]
    is_found(analysed(clearlane, pcap(frames, link)), ends)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_pcap_of_either_byte_order_and_unit(order: str, magic: int, clearlane: Clearlane) -> None:
    is_found(analysed(clearlane, pcap(FRAMES, order=order, magic=magic)))


RESOLUTIONS: dict[str, tuple[list[tuple[int, bytes]], Callable[[int], int]]] = {
    "microseconds": ([], lambda number: time_ns(number) // 1000),
    "microseconds by option": ([(9, b"\x06")], lambda number: time_ns(number) // 1000),
    "nanoseconds": ([(9, b"\x09")], time_ns),
    "100 ns": ([(9, b"\x07")], lambda number: time_ns(number) // 100),
    "100 ps": ([(9, b"\x0a")], lambda number: time_ns(number) * 10),
}


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("name", RESOLUTIONS)
def test_pcapng_of_either_byte_order_and_any_unit(
    order: str, name: str, clearlane: Clearlane
) -> None:
    options, units = RESOLUTIONS[name]
    is_found(analysed(clearlane, pcapng(order, *options, units=units)))


def test_pcapng_of_powers_of_two(clearlane: Clearlane) -> None:
    """Units of 2^-32 s, rounded up, are the nanosecond they were made of."""
    raw = pcapng("<", (9, b"\xa0"), units=lambda n: -(-(time_ns(n) << 32) // 10**9))
    is_found(analysed(clearlane, raw))


def test_pcapng_with_an_offset(clearlane: Clearlane) -> None:
    offset = struct.pack("<q", SECONDS)
    raw = pcapng("<", (9, b"\x09"), (14, offset), units=lambda n: time_ns(n) - SECONDS * 10**9)
    is_found(analysed(clearlane, raw))


def test_sections_of_two_byte_orders_and_many_interfaces(clearlane: Clearlane) -> None:
    raw = begun("<", (9, b"\x09"), interfaces=3)
    half = COUNT // 2
    for number, frame in enumerate(FRAMES[:half]):
        raw += enhanced("<", number, time_ns(number), frame, 2)
    raw += begun(">", (9, b"\x09"))
    for number, frame in enumerate(FRAMES[half:], half):
        raw += enhanced(">", number, time_ns(number), frame)
    found = analysed(clearlane, raw)
    assert [point["packets"] for point in found["points"]] == [half, half]
    assert found["captures"][0]["records"] == COUNT


def test_packet_blocks_of_old(clearlane: Clearlane) -> None:
    raw = begun("<", (9, b"\x09"))
    for number, frame in enumerate(FRAMES):
        units = time_ns(number)
        high, low = units >> 32, units & 0xFFFFFFFF
        head = struct.pack("<HHIIII", 0, 0, high, low, len(frame), len(frame))
        raw += block("<", 2, head + padded(frame))
    is_found(analysed(clearlane, raw))


def test_a_simple_packet_block_has_the_time_of_the_packet_before(clearlane: Clearlane) -> None:
    raw = begun("<", (9, b"\x09"))
    for number, frame in enumerate(FRAMES):
        if number == 7:
            raw += block("<", 3, struct.pack("<I", len(frame)) + padded(frame))
        else:
            raw += enhanced("<", number, time_ns(number), frame)
    is_found(analysed(clearlane, raw))


def native(number: int) -> bytes:
    """A frame of InfiniBand from LID 1 to LID 2, marked by FECN."""
    data = bth(number, fecn=number % 4 == 0)
    words = (8 + len(data)) // 4
    return struct.pack(">BBHHH", 0, 2, 2, words, 1) + data + bytes(2)


def erf(number: int, units: int, extensions: int = 0) -> bytes:
    """An ERF record of InfiniBand with so many extension headers."""
    packet = native(number)
    more = 0x80 if extensions else 0
    record = 16 + 8 * extensions + len(packet)
    head = struct.pack("<QBB", units, 21 | more, 4) + struct.pack(">HHH", record, 0, len(packet))
    for left in reversed(range(extensions)):
        head += bytes([0x83 if left else 0x03]) + bytes(7)
    return head + packet


@pytest.mark.parametrize("extensions", [0, 1, 3])
def test_erf_in_a_file_of_its_own(extensions: int, clearlane: Clearlane) -> None:
    units = [-(-(time_ns(number) << 32) // 10**9) for number in range(COUNT)]
    raw = b"".join(erf(number, at, extensions) for number, at in enumerate(units))
    is_found(analysed(clearlane, raw), ("LID 1", "LID 2"))


def test_the_last_microseconds_of_a_second_of_ibdump_are_corrected(clearlane: Clearlane) -> None:
    """ibdump adds 4295 units a microsecond, which carry into the next second at its end."""
    first = 999_990
    raw = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 197)
    for number in range(COUNT):
        seconds, micros = divmod(SECONDS * 10**6 + first + number, 10**6)
        record = erf(number, (seconds << 32) + micros * 4295)
        raw += struct.pack("<IIII", seconds, micros, len(record), len(record)) + record
    found = analysed(clearlane, raw)
    [flow] = found["flows"]
    assert found["start_ns"] == SECONDS * 10**9 + first * 1000
    assert flow["last_ns"] - flow["first_ns"] == (COUNT - 1) * 1000
    # The first microseconds of a second differ by less than half a nanosecond.
    assert found["captures"][0]["corrected_times"] == 10**6 - first
