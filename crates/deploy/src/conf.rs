//! An opensm.conf as a site has it: what it says, what in it stands against a plan, and the same
//! file with other values.
//!
//! OpenSM takes `key value`, the rest of the line being the value, without quotes; of a key that
//! occurs twice the last one counts; `(null)` is "not set"; `#` begins a comment anywhere
//! (osm_subnet.c).

use clearlane_ib::visible;

/// A file, line by line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Conf {
    lines: Vec<String>,
}

/// Something in a file that whoever deploys has to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// Line of the file, from 1.
    pub line: usize,
    /// What it is and what to do.
    pub what: String,
}

/// Engines of OpenSM that give the SL of a path themselves, after the QoS policy
/// (osm_sa_path_record.c).
pub(crate) const OVERRULE: [&str; 5] = ["lash", "dfsssp", "nue", "torus-2QoS", OURS];
/// Our own engine, which takes SLs from files.
const OURS: &str = "clearlane";

/// What to do about an engine that overrules a policy.
pub(crate) fn instead(engine: &str) -> &'static str {
    match engine {
        OURS => {
            "copy lfts.txt, sl2vl.dump and path-groups.txt of `clearlane route` into its folder"
        }
        _ => "use minhop, updn, dnup, ftree, dor, sssp or file",
    }
}

/// Whether a key is OpenSM's: some of them, and families of them.
fn is_known(key: &str) -> bool {
    let families = ["qos", "sm_", "log_", "perfmgr", "sa_", "force_", "max_", "cc_", "m_key"];
    let keys = [
        "guid",
        "lmc",
        "subnet_prefix",
        "routing_engine",
        "sweep_interval",
        "leaf_head_of_queue_lifetime",
        "head_of_queue_lifetime",
        "partition_config_file",
        "lfts_file",
        "console",
        "babbling_port_policy",
        "event_plugin_name",
        "mlnx_congestion_control",
        "congestion_control",
    ];
    keys.contains(&key) || families.iter().any(|family| key.starts_with(family))
}

impl Conf {
    /// Takes the text of a file; any text is one.
    pub fn read(text: &str) -> Self {
        Conf { lines: text.lines().map(str::to_owned).collect() }
    }

    /// Whether it has a key that every opensm.conf may have, or nothing at all.
    pub fn is_one(&self) -> bool {
        let mut keys = self.lines.iter().filter_map(|line| Conf::entry(line)).peekable();
        keys.peek().is_none() || keys.any(|(key, _)| is_known(key))
    }

    /// Key and value of a line that has one.
    fn entry(line: &str) -> Option<(&str, &str)> {
        let line = line.split('#').next()?.trim();
        if line.is_empty() {
            return None;
        }
        let (key, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Some((key, value.trim_matches(|c: char| c.is_whitespace() || "\"'".contains(c))))
    }

    /// The value that counts for a key, with its line; nothing if it is not set.
    pub fn get(&self, key: &str) -> Option<(usize, &str)> {
        let lines = self.lines.iter().enumerate().rev();
        let mut found = lines.filter_map(|(index, line)| {
            let (known, value) = Conf::entry(line)?;
            (known == key).then_some((index + 1, value))
        });
        found.next().filter(|(_, value)| !matches!(*value, "(null)" | ""))
    }

    /// The file with these values: each in the place of the line that counts, whose comment stays,
    /// new keys at the end.
    pub fn with(&self, values: &[(String, String)]) -> String {
        let mut lines = self.lines.clone();
        let mut added = Vec::new();
        for (key, value) in values {
            let is_it = |line: &String| Conf::entry(line).is_some_and(|(known, _)| known == key);
            match lines.iter().rposition(is_it) {
                Some(index) => {
                    let comment =
                        lines[index].find('#').map(|at| format!(" {}", &lines[index][at..]));
                    lines[index] = format!("{key} {value}{}", comment.unwrap_or_default());
                }
                None => added.push(format!("{key} {value}")),
            }
        }
        lines.extend(added);
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// The file as it is.
    pub fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// The routing engines in the order in which OpenSM tries them, with their line.
    pub fn engines(&self) -> (usize, Vec<&str>) {
        let (line, value) = self.get("routing_engine").unwrap_or((0, ""));
        let names = value.split(|c: char| c == ',' || c.is_whitespace());
        (line, names.filter(|name| !name.is_empty()).collect())
    }

    /// Data lanes that `max_op_vls` leaves (IBA vol. 1, 14.2.5.6: 1 is VL 0, 2 VL 0-1, 3 VL 0-3,
    /// 4 VL 0-7, 5 VL 0-14); 15 where it is not set.
    pub fn lanes_max(&self) -> u8 {
        match self.get("max_op_vls").and_then(|(_, value)| value.parse().ok()) {
            Some(code @ 1..=4) => 1 << (code - 1_u8),
            _ => 15,
        }
    }

    /// What stands against service levels from a QoS policy, and what is beside it.
    pub fn remarks(&self) -> Vec<Remark> {
        let mut remarks = Vec::new();
        let mut say = |line, what: String| {
            remarks.push(Remark { line, what: visible(&what).into_owned() });
        };
        let (line, engines) = self.engines();
        for engine in engines.iter().filter(|engine| OVERRULE.contains(engine)) {
            say(
                line,
                format!(
                    "routing_engine {engine} gives the SL of a path itself and overrules the QoS \
                     policy; {}",
                    instead(engine)
                ),
            );
        }
        if let Some(engine) = engines.iter().find(|engine| engine.starts_with("ar_")) {
            say(
                line,
                format!(
                    "routing_engine {engine} is adaptive routing of NVIDIA's OpenSM: switches \
                     choose among ports on the SLs that are adaptive there; keep the SLs of this \
                     plan out of them, or lanes say nothing of who shares a queue"
                ),
            );
        }
        if let Some((line, value)) = self.get("mlnx_congestion_control")
            && value != "0"
        {
            let more = match self.get("congestion_control_policy_file") {
                Some((_, file)) => format!(" (policy file {file})"),
                None => String::new(),
            };
            say(
                line,
                format!(
                    "mlnx_congestion_control {value}: congestion control is in firmware{more}; its \
                     policy names SLs and VLs of its own, so check cnp_sl and vl_profiles there"
                ),
            );
        }
        if let Some((line, value)) = self.get("congestion_control")
            && value.eq_ignore_ascii_case("true")
        {
            say(line, "congestion_control TRUE is set: it acts on all lanes alike".into());
        }
        if let Some((line, _)) = self.get("enhanced_qos_policy_file") {
            say(line, "enhanced_qos_policy_file is NVIDIA's own and is not looked at".into());
        }
        if let Some((line, _)) = self.get("event_plugin_name") {
            say(line, "an event plug-in is loaded; it stays".into());
        }
        if let Some((line, value)) = self.get("sm_sl")
            && value != "0"
        {
            say(line, format!("sm_sl {value}: management is on that SL; it stays"));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_of_a_key_counts_and_is_replaced() {
        let conf = Conf::read("# qos TRUE\nqos FALSE\nlmc 0\n  qos\tFALSE \nlfts_file (null)\n");
        assert_eq!(conf.get("qos"), Some((4, "FALSE")));
        assert_eq!((conf.get("lfts_file"), conf.get("sm_sl")), (None, None));
        let values = [("qos", "TRUE"), ("lfts_file", "x"), ("new", "1")];
        let values = values.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let text = conf.with(&values);
        assert_eq!(text, "# qos TRUE\nqos FALSE\nlmc 0\nqos TRUE\nlfts_file x\nnew 1\n");
    }

    #[test]
    fn what_overrules_a_policy_is_said() {
        let said = |text: &str| {
            let remarks = Conf::read(text).remarks();
            remarks.into_iter().map(|remark| (remark.line, remark.what)).collect::<Vec<_>>()
        };
        assert!(said("routing_engine ftree,updn\nmlnx_congestion_control 0\n").is_empty());
        let lash = said("x 1\nrouting_engine updn, lash\n");
        assert!(lash[0].0 == 2 && lash[0].1.starts_with("routing_engine lash gives"), "{lash:?}");
        let site = said("routing_engine ar_ftree\nmlnx_congestion_control 2\n");
        assert!(site[0].1.contains("adaptive") && site[1].1.contains("in firmware"), "{site:?}");
    }

    #[test]
    fn comments_and_quotes_are_no_part_of_a_value() {
        let text = "routing_engine updn # lash once\nsm_sl \"0\"\n qos_policy_file '/a b' #x\n";
        let conf = Conf::read(text);
        assert_eq!(conf.engines(), (1, vec!["updn"]));
        assert!(conf.remarks().is_empty());
        assert_eq!(conf.get("qos_policy_file"), Some((3, "/a b")));
        let with = conf.with(&[("routing_engine".into(), "file".into())]);
        assert!(with.starts_with("routing_engine file # lash once\n"), "{with}");
    }

    #[test]
    fn lanes_are_those_of_the_specification() {
        let lanes = |text: &str| Conf::read(text).lanes_max();
        let codes = ["max_op_vls 1", "max_op_vls 3", "max_op_vls 4", "max_op_vls 5", ""];
        assert_eq!(codes.map(lanes), [1, 4, 8, 15, 15]);
    }

    proptest! {
        /// Whatever the file, the values that are set are those that count.
        #[test]
        fn values_count_once_set(text in "[a-c \\t#\\n(\"']{0,80}", key in "[a-c]{1,2}") {
            let conf = Conf::read(&text);
            let again = Conf::read(&conf.with(&[(key.clone(), "7".into())]));
            prop_assert_eq!(again.get(&key).map(|(_, value)| value), Some("7"));
            prop_assert!(again.remarks().iter().all(|remark| !remark.what.contains('\n')));
        }
    }
}
