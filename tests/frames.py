"""Frames of captures, read by `struct` alone: pcapng, pcap, ERF, LRH, BTH and what follows it."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

AFTER_BTH = dict.fromkeys([0x00, 0x01, 0x02, 0x04, 0x0E, 0x80, 0x81], "")
AFTER_BTH |= {0x0C: "reth", 0x0D: "aeth", 0x0F: "aeth", 0x11: "aeth", 0x64: "deth"}
"""What follows the BTH of an opcode (IBA vol. 1, table 38 and 9.4)."""
LENGTHS = {"": 0, "aeth": 4, "deth": 8, "reth": 16}
LRH, BASE, ERF, ETHERNET_TO_UDP = 8, 12, 16, 42


@dataclass(frozen=True)
class Frame:
    """A packet of a file, without the header of its ERF record."""

    time_ns: int
    erf_ns: int | None
    interface: int
    name: str
    direction: int
    comment: str
    data: bytes
    wire_bytes: int

    @property
    def transport(self) -> bytes:
        """From the BTH on."""
        return self.data[ETHERNET_TO_UDP if self.erf_ns is None else LRH :]

    @property
    def opcode(self) -> int:
        """The BTH's first byte."""
        return self.transport[0]

    @property
    def fecn(self) -> bool:
        """Whether it has FECN."""
        return self.transport[4] & 0x80 != 0

    @property
    def becn(self) -> bool:
        """Whether it has BECN."""
        return self.transport[4] & 0x40 != 0

    @property
    def after(self) -> int:
        """Bytes up to the payload."""
        head = len(self.data) - len(self.transport)
        return head + BASE + LENGTHS[AFTER_BTH[self.opcode]]

    @property
    def is_cnp(self) -> bool:
        """It is a congestion notification packet."""
        return self.opcode in (0x80, 0x81)


def options(data: bytes) -> dict[int, bytes]:
    """The options that end a block of pcapng."""
    found, at = {}, 0
    while at < len(data):
        code, length = struct.unpack_from("<HH", data, at)
        if code == 0:
            break
        found[code] = data[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return found


def unwrapped(data: bytes, wire_bytes: int) -> tuple[int, int, bytes]:
    """Time, interface and packet of an ERF record; its header must agree with the file's."""
    units, kind, flags = struct.unpack_from("<QBB", data)
    record, lost, wire = struct.unpack_from(">HHH", data, 10)
    assert (kind, lost) == (21, 0)
    assert record == len(data) and wire == wire_bytes - ERF
    assert flags & 0x0C == (4 if record == wire + ERF else 12)
    fraction = ((units & 0xFFFFFFFF) * 10**9 + 2**31) >> 32
    return (units >> 32) * 10**9 + fraction, flags & 3, data[ERF:]


def pcapng(raw: bytes) -> Iterator[Frame]:
    """The packets of a pcapng file of one section."""
    at, interfaces = 0, []
    while at < len(raw):
        kind, length = struct.unpack_from("<II", raw, at)
        assert length % 4 == 0 and raw[at + length - 4 : at + length] == struct.pack("<I", length)
        body = raw[at + 8 : at + length - 4]
        if kind == 0x0A0D0D0A:
            assert at == 0 and body[:8] == struct.pack("<IHH", 0x1A2B3C4D, 1, 0)
        elif kind == 1:
            [link] = struct.unpack_from("<H", body)
            known = options(body[8:])
            assert known[9] == b"\x09" and link in (1, 197)
            interfaces.append((link, known[2].decode()))
        else:
            assert kind == 6
            number, high, low, kept, wire = struct.unpack_from("<5I", body)
            data, known = body[20 : 20 + kept], options(body[20 + (kept + 3) // 4 * 4 :])
            link, name = interfaces[number]
            erf_ns = None
            if link == 197:
                erf_ns, _, data = unwrapped(data, wire)
                wire -= ERF
            [direction] = struct.unpack("<I", known[2])
            comment = known.get(1, b"").decode()
            time_ns = high << 32 | low
            yield Frame(time_ns, erf_ns, number, name, direction, comment, data, wire)
        at += length


def pcap_records(raw: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Seconds, microseconds, bytes on the wire and bytes of the records of a pcap file of ERF."""
    magic, major, minor, _, _, _, link = struct.unpack_from("<IHHIIII", raw)
    assert (magic, major, minor, link) == (0xA1B2C3D4, 2, 4, 197)
    at = 24
    while at < len(raw):
        seconds, micros, kept, wire = struct.unpack_from("<4I", raw, at)
        yield seconds, micros, wire, raw[at + 16 : at + 16 + kept]
        at += 16 + kept
    assert at == len(raw)


def pcap(raw: bytes) -> Iterator[Frame]:
    """The packets of a pcap file of ERF records."""
    for seconds, micros, wire, record in pcap_records(raw):
        erf_ns, interface, data = unwrapped(record, wire)
        time_ns = seconds * 10**9 + micros * 1000
        yield Frame(time_ns, erf_ns, interface, "", 0, "", data, wire - ERF)


@functools.cache
def frames(file: Path) -> list[Frame]:
    """The packets of a file that a run wrote."""
    return list((pcapng if file.suffix == ".pcapng" else pcap)(file.read_bytes()))


def headers(frame: Frame) -> dict[str, int]:
    """The fields of a packet's headers, by the names that Wireshark has for them."""
    found: dict[str, int] = {}
    if frame.erf_ns is not None:
        lane, level, dlid, words, slid = struct.unpack_from(">BBHHH", frame.data)
        lrh = {"vl": lane >> 4, "lver": lane & 15, "sl": level >> 4, "lnh": level & 3}
        lrh |= {"dlid": dlid, "pktlen": words & 0x7FF, "slid": slid}
        found |= {f"lrh.{name}": value for name, value in lrh.items()}
    opcode, flags, key, pair, number = struct.unpack_from(">BBHII", frame.transport)
    bth = {"opcode": opcode, "se": flags >> 7, "m": flags >> 6 & 1, "padcnt": flags >> 4 & 3}
    bth |= {"tver": flags & 15, "p_key": key, "destqp": pair & 0xFFFFFF}
    bth |= {"a": number >> 31, "psn": number & 0xFFFFFF}
    found |= {f"bth.{name}": value for name, value in bth.items()}
    rest = frame.transport[BASE:]
    match AFTER_BTH[opcode]:
        case "aeth":
            found |= {"aeth.syndrome": rest[0], "aeth.syndrome.opcode": rest[0] >> 5 & 3}
            found["aeth.msn"] = int.from_bytes(rest[1:4])
        case "deth":
            q_key, source = struct.unpack_from(">II", rest)
            found |= {"deth.q_key": q_key, "deth.srcqp": source & 0xFFFFFF}
        case "reth":
            address, r_key, length = struct.unpack_from(">QII", rest)
            found |= {"reth.va": address, "reth.r_key": r_key, "reth.dmalen": length}
    return {f"infiniband.{name}": value for name, value in found.items()}
