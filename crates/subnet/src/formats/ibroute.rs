//! What it is: tables as `ibroute`, `dump_fts` and `dump_lfts.sh` (infiniband-diags) print them;
//! OpenSM reads them too.

use super::{Content, Entry, unicast_lids};

/// `ibroute`.
pub(super) const ENTRY: Entry = Entry {
    name: "ibroute",
    summary: "tables printed by ibroute, dump_fts or dump_lfts.sh, also many in one file",
    forwards: true,
    sniff: |text| unicast_lids::sniff(text, ":") || unicast_lids::sniff(text, "("),
    read: |text, file| unicast_lids::read(text, file).map(Content::Tables),
};
