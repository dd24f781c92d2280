"""Readers of the real tools' files, written apart from the Rust ones so that they can disagree.

Tables are {switch GUID: {LID: port}}. Everything is an integer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

Tables = dict[int, dict[int, int]]


def lfts(text: str) -> Tables:
    """opensm-lfts.dump, dump_fts' output, and the file `routing_engine file` reads."""
    tables: Tables = {}
    row: dict[int, int] | None = None
    for line in text.splitlines():
        if line.startswith("Unicast lids"):
            found = re.search(r" guid 0x([0-9a-fA-F]+)[\s:]", line + " ")
            assert found, f"a section without a switch GUID: {line}"
            row = tables.setdefault(int(found.group(1), 16), {})
        elif found := re.match(r"\s*0x([0-9a-fA-F]+)\s+(\d+)(\s|$)", line):
            assert row is not None, f"an entry before any section: {line}"
            lid = int(found.group(1), 16)
            assert lid not in row, f"LID {lid} twice in a section"
            row[lid] = int(found.group(2))
    assert tables, "no section at all"
    return tables


def fdbs(text: str) -> Tables:
    """opensm.fdbs; LIDs it calls unreachable are left out."""
    tables: Tables = {}
    row: dict[int, int] | None = None
    for line in text.splitlines():
        if found := re.match(r"dump_ucast_routes: Switch 0x([0-9a-f]+)", line):
            row = tables.setdefault(int(found.group(1), 16), {})
        elif found := re.match(r"0x([0-9A-F]+) : (\d+) ", line):
            assert row is not None, f"an entry before any section: {line}"
            row[int(found.group(1), 16)] = int(found.group(2))
    assert tables, "no section at all"
    return tables


@dataclass(repr=False)
class Cabling:
    """The cables of a subnet."""

    names: dict[int, str] = field(default_factory=dict)
    """NodeDescription by node GUID."""
    switches: set[int] = field(default_factory=set)
    """Node GUIDs."""
    lids: dict[int, int] = field(default_factory=dict)
    """Base LID by node GUID."""
    host_lids: dict[int, int] = field(default_factory=dict)
    """Node GUID by the LID of each adapter port: a host may have several."""
    cables: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(node GUID, port) to (node GUID, port), both ways."""

    def __repr__(self) -> str:
        return f"{len(self.hosts)} hosts, {len(self.switches)} switches"

    @property
    def hosts(self) -> list[int]:
        """Node GUIDs of the adapters, by GUID."""
        return sorted(guid for guid in self.names if guid not in self.switches)

    def leaf(self, host: int) -> tuple[int, int]:
        """The switch and its port a host hangs on, by its first port with a cable."""
        return self.cables.get((host, 1)) or self.cables[host, 2]

    def named(self, name: str) -> int:
        """GUID of the node with this name."""
        found = [guid for guid, known in self.names.items() if known == name]
        assert len(found) == 1, f"{len(found)} nodes are called {name}"
        return found[0]


_END = re.compile(
    r"\{ (SW|CA)(?:-SM)? Ports:\S+ SystemGUID:\S+ NodeGUID:(\S+) PortGUID:\S+ VenID:\S+ DevID:\S+ "
    r"Rev:\S+ \{(.*?)\} LID:(\S+) PN:(\S+) \}"
)


def subnet_lst(text: str) -> Cabling:
    """opensm-subnet.lst: a line per cable and direction."""
    cabling = Cabling()
    for line in text.splitlines():
        ends = _END.findall(line)
        assert len(ends) == 2, f"not two ends: {line}"
        places = []
        for kind, guid_text, name, lid, port in ends:
            guid = int(guid_text, 16)
            cabling.names[guid] = name
            cabling.lids[guid] = int(lid, 16)
            if kind == "SW":
                cabling.switches.add(guid)
            else:
                cabling.host_lids[int(lid, 16)] = guid
            places.append((guid, int(port, 16)))
        cabling.cables[places[0]] = places[1]
    assert cabling.cables, "no cable at all"
    return cabling


def rank_order(netlist: str) -> list[int]:
    """Node GUIDs of the adapters in the order of a netlist we wrote: the order of ranks."""
    found = re.findall(r'^Ca\t\d+ "H-([0-9a-f]+)"', netlist, re.MULTILINE)
    return [int(guid, 16) for guid in found]


def path(cabling: Cabling, tables: Tables, source: int, target: int) -> list[tuple[int, int]]:
    """The (switch, output port) pairs a packet from one host to another passes."""
    lid = cabling.lids[target]
    switch, _ = cabling.leaf(source)
    passed: list[tuple[int, int]] = []
    while True:
        port = tables[switch][lid]
        passed.append((switch, port))
        assert len(passed) <= 64, f"a loop on the way to LID {lid}: {passed[-4:]}"
        node, _ = cabling.cables[switch, port]
        if node not in cabling.switches:
            assert node == target, f"LID {lid} ends at {cabling.names[node]}"
            return passed
        switch = node


def worst_of_shift(cabling: Cabling, tables: Tables, ranks: list[int], shift: int) -> int:
    """Flows on the busiest switch output when every rank sends to the rank `shift` further on."""
    load: dict[tuple[int, int], int] = {}
    for rank, source in enumerate(ranks):
        for output in path(cabling, tables, source, ranks[(rank + shift) % len(ranks)]):
            load[output] = load.get(output, 0) + 1
    return max(load.values())


def edit_fdbs(text: str, entries: dict[tuple[int, int], int]) -> str:
    """opensm.fdbs with other ports for some (switch GUID, LID)."""
    switch, lines, left = 0, [], dict(entries)
    for line in text.splitlines(keepends=True):
        if found := re.match(r"dump_ucast_routes: Switch 0x([0-9a-f]+)", line):
            switch = int(found.group(1), 16)
        elif found := re.match(r"0x([0-9A-F]+) : (\d+) ", line):
            port = left.pop((switch, int(found.group(1), 16)), None)
            if port is not None:
                line = line.replace(f": {found.group(2)} ", f": {port:03} ", 1)
        lines.append(line)
    assert not left, f"no such entries: {left}"
    return "".join(lines)


def edit_lfts(text: str, entries: dict[tuple[int, int], int]) -> str:
    """An LFT file for `routing_engine file` with other ports for some (switch GUID, LID)."""
    switch, lines, left = 0, [], dict(entries)
    for line in text.splitlines(keepends=True):
        if line.startswith("Unicast lids") and (found := re.search(r" guid 0x([0-9a-f]+)", line)):
            switch = int(found.group(1), 16)
        elif found := re.match(r"(\s*0x([0-9a-fA-F]+)\s+)\d+", line):
            port = left.pop((switch, int(found.group(2), 16)), None)
            if port is not None:
                line = f"{found.group(1)}{port:03}{line[found.end():]}"
        lines.append(line)
    assert not left, f"no such entries: {left}"
    return "".join(lines)
