//! A site's opensm.conf and QoS policy, which `clearlane deploy` changes.
#![no_main]

use clearlane_deploy::{Conf, Policy};
use clearlane_fuzz::{FILE, one_line, refused, text};
use clearlane_ib::Guid;
use clearlane_subnet::formats::path_groups::GroupDump;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = text(data);
    let conf = Conf::read(&text);
    let lines = text.lines().count();
    for remark in conf.remarks() {
        one_line(&remark.what);
        assert!((1..=lines).contains(&remark.line), "{remark:?}");
    }
    let values = [("qos", "TRUE"), ("routing_engine", "file")];
    let values = values.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let with = Conf::read(&conf.with(&values));
    for (key, value) in &values {
        assert_eq!(with.get(key).map(|(_, value)| value), Some(value.as_str()));
    }
    let members = vec![(Guid(1), 0, 0), (Guid(2), 1, 0)];
    let groups = GroupDump { members, levels: vec![vec![0, 1, 1, 0]], count: 2 };
    match Policy::of(&groups).added_to(&text, FILE) {
        Err(error) => refused(&error),
        Ok(both) => {
            // What the site says is all there, in its order, and ours is seen the second time.
            let mut ours = both.lines();
            let bare = |line: &str| line.trim_end_matches('\r').to_owned();
            let is_there = |line: &str| ours.any(|known| bare(known) == bare(line));
            assert!(text.lines().all(is_there), "{both}");
            assert!(Policy::of(&groups).added_to(&both, FILE).is_err());
        }
    }
});
