"""Lists of links that infiniband-diags print: the same fabric by each, and tables that fit it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import readers
from conftest import Clearlane
from peers import Ibsim, OpenSm

LISTS = {
    "iblinkinfo": ["iblinkinfo"],
    "iblinkinfo -l": ["iblinkinfo", "-l"],
    "iblinkinfo -p": ["iblinkinfo", "-p"],
    "ibnetdiscover -p": ["ibnetdiscover", "-p"],
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_links_are_the_fabric(
    name: str, clearlane: Clearlane, ibsim: Callable[[Path], Ibsim], opensm: Callable[..., OpenSm]
) -> None:
    """What the tool prints of a running subnet, converted to a netlist, is that subnet: the same
    nodes and cables, and OpenSM loads the tables that were routed for it."""
    clearlane("fabric", "build", "leaf-spine:leaves=4,hosts=3,spines=2", "-o", "built.topo")
    clearlane("fabric", "cut", "built.topo", "leaf00[4]", "-o", "fabric.topo")
    with ibsim(clearlane.folder / "fabric.topo") as subnet:
        subnet.opensm({"routing_engine": "minhop"})
        printed = subnet.client(LISTS[name]).stdout
        whole = subnet.client(["ibnetdiscover"]).stdout
    (clearlane.folder / "links").write_text(printed)
    (clearlane.folder / "whole").write_text(whole)

    def sizes(file: str) -> dict[str, object]:
        said = json.loads(clearlane("fabric", "show", file, "--json").stdout)
        return {key: said[key] for key in ["hosts", "switches", "cables"]}

    assert sizes("links") == sizes("whole")
    clearlane("fabric", "convert", "links", "-o", "again.topo")
    clearlane("route", "links", "--engine", "up-down", "-o", "out")
    loaded = opensm(
        clearlane.folder / "again.topo",
        "file",
        guid2lid=(clearlane.folder / "out" / "guid2lid").read_text(),
        lfts_file=clearlane.folder / "out" / "lfts.txt",
    )
    assert "ERR" not in loaded.log, loaded.log
    ours = readers.lfts((clearlane.folder / "out" / "lfts.txt").read_text())
    theirs = readers.lfts((loaded.folder / "opensm-lfts.dump").read_text())
    assert theirs == ours
    # Every path arrives at the adapters of the first subnet: their GUIDs are the same.
    cabling = readers.subnet_lst((loaded.folder / "opensm-subnet.lst").read_text())
    first = readers.rank_order((clearlane.folder / "fabric.topo").read_text())
    assert cabling.hosts == sorted(first)


def test_switches_alone_have_hosts_without_guids(
    clearlane: Clearlane, ibsim: Callable[[Path], Ibsim]
) -> None:
    """`--switches-only` knows adapters by their LIDs: they are there, under made-up GUIDs."""
    clearlane("fabric", "build", "star:3", "-o", "fabric.topo")
    with ibsim(clearlane.folder / "fabric.topo") as subnet:
        subnet.opensm({"routing_engine": "minhop"})
        printed = subnet.client(["iblinkinfo", "--switches-only"]).stdout
    (clearlane.folder / "links").write_text(printed)
    said = clearlane("fabric", "show", "links").stdout
    assert said.startswith("3 hosts, 1 switches, 3 cables"), said
    assert "has no GUID here" in said
