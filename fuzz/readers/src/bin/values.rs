//! Short texts: quantities, GUIDs, widths and speeds, names of cables and nodes. The first
//! byte says which.
#![no_main]

use clearlane_fabric::Fabric;
use clearlane_fabric::damage::{cables, node};
use clearlane_fuzz::{one_line, refused, text};
use clearlane_ib::{BitsPerSecond, Bytes, Guid, LinkSpeed, LinkWidth, Picoseconds};
use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;
use std::fmt::{Debug, Display};
use std::str::FromStr;

thread_local! {
    static FABRIC: OnceCell<Fabric> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    let Some((which, rest)) = data.split_first() else { return };
    let text = text(rest);
    match which % 6 {
        0 => quantity::<Picoseconds>(&text),
        1 => quantity::<Bytes>(&text),
        2 => quantity::<BitsPerSecond>(&text),
        3 => match Guid::from_hex(&text) {
            Ok(guid) => assert_eq!(Guid::from_hex(&guid.to_string()), Ok(guid)),
            Err(error) => refused(&error),
        },
        4 => {
            let width = LinkWidth::from_name(&text);
            assert!(width.is_none_or(|width| width.to_string() == text));
            let speed = LinkSpeed::from_name(&text);
            assert!(speed.is_none_or(|speed| speed.name() == text));
        }
        _ => names(&text),
    }
});

/// A quantity prints as something that reads as the same.
fn quantity<Q: FromStr<Err: Display> + Display + Debug + PartialEq>(text: &str) {
    match text.parse::<Q>() {
        Err(error) => refused(&error),
        Ok(quantity) => {
            let shown = quantity.to_string();
            one_line(&shown);
            if let Ok(again) = shown.parse::<Q>() {
                assert_eq!(again.to_string(), shown);
            }
        }
    }
}

/// Cables and nodes by name, a line each.
fn names(text: &str) {
    FABRIC.with(|cell| names_on(cell.get_or_init(|| clearlane_fuzz::subnet().0), text));
}

fn names_on(fabric: &Fabric, text: &str) {
    let names: Vec<&str> = text.lines().collect();
    match cables(fabric, &names) {
        Ok(found) => assert_eq!(found.len(), names.len()),
        Err(error) => refused(&error),
    }
    for name in names {
        match node(fabric, name) {
            Ok(id) => {
                let node = fabric.node(id);
                assert!(node.name == name || node.guid.to_string() == name);
            }
            Err(error) => refused(&error),
        }
    }
}
