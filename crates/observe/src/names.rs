//! Names of addresses, as `/etc/hosts` has them, with LIDs besides.

use clearlane_capture::Endpoint;
use clearlane_ib::{KEPT_CHARS_MAX, quoted};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What addresses are called.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    known: BTreeMap<Endpoint, String>,
}

impl Names {
    /// Reads lines of an address and a name: `10.0.0.1 h1`, `fe80::1 h1`, `7 h1` or `0x7 h1` of a
    /// LID. What follows `#` and further names of a line are not read, nor is the zone of an
    /// address, as in `fe80::1%lo0`. A name with blanks or `#` stands in quotes: `7 "h1 HCA-1"`.
    /// Fails with the line.
    pub fn read(text: &str, file: &str) -> Result<Self, String> {
        let mut known = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let address = line.split([' ', '\t', '#']).next().unwrap_or_default();
            if address.is_empty() {
                continue;
            }
            let wrong = |problem: String| Err(format!("{file}:{}: {problem}", number + 1));
            let rest = line[address.len()..].trim_start();
            let name = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').map(|(name, _)| name),
                None => rest.split([' ', '\t', '#', '\r']).next(),
            };
            let Some(name) = name.filter(|name| !name.is_empty()) else {
                let address = quoted(address);
                return wrong(format!("{address} has no name; write an address, then a name"));
            };
            if name.chars().count() > KEPT_CHARS_MAX {
                let (address, letters) = (quoted(address), name.chars().count());
                return wrong(format!(
                    "the name of {address} has {letters} characters; write {KEPT_CHARS_MAX} at most"
                ));
            }
            let address = address.split('%').next().unwrap_or_default();
            for endpoint in endpoints(address) {
                known.insert(endpoint, name.to_owned());
            }
            if endpoints(address).is_empty() {
                let address = quoted(address);
                return wrong(format!(
                    "{address} is no address; write a LID, 1 to 65535, an IPv4 or IPv6 address \
                     or a GID"
                ));
            }
        }
        Ok(Names { known })
    }

    /// What an address is called: its name, or itself.
    pub fn of(&self, endpoint: Endpoint) -> String {
        self.known.get(&endpoint).cloned().unwrap_or_else(|| endpoint.to_string())
    }
}

/// The addresses that a word may stand for.
fn endpoints(word: &str) -> Vec<Endpoint> {
    let lid = match word.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    if let Some(lid) = lid.filter(|lid| *lid > 0) {
        return vec![Endpoint::Lid(lid)];
    }
    match word.parse() {
        // RoCE v1 has GIDs that are made of IPv4 addresses.
        Ok(IpAddr::V4(address)) => vec![
            Endpoint::Ipv4(address.to_bits()),
            Endpoint::Gid(address.to_ipv6_mapped().to_bits()),
        ],
        Ok(IpAddr::V6(address)) => {
            vec![Endpoint::Ipv6(address.to_bits()), Endpoint::Gid(address.to_bits())]
        }
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_hosts_files_have_them() {
        let text = "# ours\n127.0.0.1 localhost\n7 h7 # a LID\n\n0x10 h16\nfe80::1%lo0 h1 alias\n\
                    9\t\"h#9 HCA-1\" # quoted\r\n";
        let names = Names::read(text, "hosts").unwrap();
        assert_eq!(names.of(Endpoint::Lid(7)), "h7");
        assert_eq!(names.of(Endpoint::Lid(16)), "h16");
        assert_eq!(names.of(Endpoint::Lid(8)), "LID 8");
        assert_eq!(names.of(Endpoint::Lid(9)), "h#9 HCA-1");
        assert_eq!(names.of(Endpoint::Ipv4(0x7f00_0001)), "localhost");
        let local = 0xfe80_u128 << 112 | 1;
        assert_eq!((names.of(Endpoint::Gid(local)), names.of(Endpoint::Ipv6(local))), {
            ("h1".to_owned(), "h1".to_owned())
        });
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let error = |text: &str| Names::read(text, "hosts").unwrap_err();
        assert_eq!(error("7\n"), "hosts:1: \"7\" has no name; write an address, then a name");
        assert!(error("7 h7\nh8 8\n").starts_with("hosts:2: \"h8\" is no address; write a LID"));
        assert!(error("0 h0\n").contains("is no address"));
        let long = "h".repeat(10 << 20);
        let named = error(&format!("7 {long}\n"));
        assert_eq!(named, "hosts:1: the name of \"7\" has 10485760 characters; write 255 at most");
        for text in [format!("{long}\n"), format!("{long} h7\n")] {
            assert!(error(&text).len() < 300);
        }
    }
}
