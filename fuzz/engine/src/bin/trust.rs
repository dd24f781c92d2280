//! What says whom to trust and what is allowed: policies, inventories, enrolment tokens, names in
//! certificates.
#![no_main]

use clearlane_fuzz::{one_line, refused, text};
use clearlane_traffic::controller::Inventory;
use clearlane_traffic::enrolment::EnrolmentToken;
use clearlane_traffic::name::Identity;
use clearlane_traffic::policy::Policy;
use libfuzzer_sys::fuzz_target;
use std::net::SocketAddr;

fuzz_target!(|data: &[u8]| {
    let text = text(data);
    match text.parse::<Policy>() {
        Ok(policy) => {
            policy.in_words().iter().for_each(|line| one_line(line));
            for address in ["127.0.0.1", "10.1.2.3", "224.0.0.1", "::1", "::ffff:10.1.2.3", "::"] {
                let address = address.parse().expect("an address");
                let port = SocketAddr::new(address, 7448);
                for fault in [policy.may_send(port, true), policy.may_receive(address, false)] {
                    fault.err().iter().for_each(|fault| refused(fault));
                }
            }
            let many = "255.255.255.255:7448".parse().expect("an address");
            assert!(policy.may_send(many, false).is_err(), "a broadcast is allowed");
        }
        Err(fault) => refused(&fault),
    }
    match text.parse::<Inventory>() {
        Ok(inventory) => {
            inventory.all().iter().for_each(|known| one_line(&format!("{known:?}")));
        }
        Err(fault) => refused(&fault),
    }
    match text.parse::<EnrolmentToken>() {
        Ok(token) => assert_eq!(token.to_string().parse(), Ok(token)),
        Err(fault) => refused(&fault),
    }
    if let Some(who) = Identity::of_dns(&text) {
        assert!(who.dns().eq_ignore_ascii_case(&text));
    }
});
