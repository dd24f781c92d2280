//! Forwarding tables: `opensm-lfts.dump`, `ibroute` and `dump_fts`, `opensm.fdbs`; put onto a
//! fabric, checked, written, read again, and given away.
#![no_main]

use clearlane_fabric::Fabric;
use clearlane_fabric::anonymize::{Naming, anonymize};
use clearlane_fuzz::{FILE, one_line, refused, text};
use clearlane_ib::Guid;
use clearlane_subnet::check::{credit_loop, reachability};
use clearlane_subnet::engines::{RouteOptions, TableFile, route};
use clearlane_subnet::formats::{self, Content, fdbs, lfts};
use clearlane_subnet::{ForwardingTables, Subnet};
use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;

thread_local! {
    static SUBNET: OnceCell<(Fabric, Subnet)> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    SUBNET.with(|cell| {
        let (fabric, subnet) = cell.get_or_init(clearlane_fuzz::subnet);
        put_on(fabric, subnet, &text(data));
    });
});

fn put_on(fabric: &Fabric, sane: &Subnet, text: &str) {
    given_away(fabric, text);
    let dump = match formats::read(text, FILE) {
        Ok(Content::Tables(dump)) => dump,
        Ok(_) => return,
        Err(error) => return refused(&error),
    };
    let own = TableFile { name: FILE.into(), text: text.to_owned() };
    let options = RouteOptions { files: vec![own], ..RouteOptions::default() };
    match route("file", fabric, &options) {
        Ok(subnet) => subnet.remarks.iter().for_each(|remark| one_line(remark)),
        Err(error) => refused(&error),
    }
    match dump.tables(fabric, &sane.lids, FILE) {
        Err(error) => refused(&error),
        Ok((tables, oddities)) => {
            oddities.iter().for_each(|oddity| one_line(&oddity.to_string()));
            written(fabric, Subnet { tables, ..sane.clone() });
        }
    }
}

/// No GUID of the site is left in a dump that is given away.
fn given_away(fabric: &Fabric, text: &str) {
    let (_, aliases) = anonymize(fabric, &Naming::Order).expect("GUIDs differ");
    let away = aliases.rename_dump(text);
    for word in away.split(|c: char| !c.is_ascii_alphanumeric()) {
        let guid = Guid::from_hex(word).ok().and_then(|guid| fabric.by_guid(guid));
        assert!(guid.is_none(), "{word} is left in {away}");
    }
}

/// Tables of any content are checked without a fault of ours, and both files carry them.
fn written(fabric: &Fabric, subnet: Subnet) {
    one_line(&reachability(fabric, &subnet).to_string().replace('\n', " "));
    credit_loop(fabric, &subnet);
    let again = |text: Vec<u8>| -> ForwardingTables {
        let read = formats::read(&String::from_utf8(text).expect("ASCII"), FILE);
        let Ok(Content::Tables(dump)) = read else { panic!("{read:?}") };
        dump.tables(fabric, &subnet.lids, FILE).expect("our own ports").0
    };
    let mut text = Vec::new();
    lfts::write(fabric, &subnet, &mut text).expect("memory takes it");
    assert!(again(text) == subnet.tables);
    let mut text = Vec::new();
    fdbs::write(fabric, &subnet, &mut text).expect("memory takes it");
    assert!(again(text) == subnet.tables);
}
