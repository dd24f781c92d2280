//! Congestion control as options of OpenSM: what is written says what was set, or it is an error.

use clearlane_lab::{Experiment, OpensmConf};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

/// An experiment with these keys in `[control.iba-cc]` and whatever follows.
fn experiment(build: &str, settings: &str, rest: &str) -> Experiment {
    let text = format!(
        "schema = 1\nname = \"export\"\nfabric = {{ build = \"{build}\" }}\n\
         subnet = {{ engine = \"min-hop\" }}\nsim = {{ preset = \"qdr\" }}\n\
         run = {{ duration = \"1 ms\" }}\n\
         [control]\nwhen = \"iba-cc\"\n[control.iba-cc]\n{settings}\n\
         [[traffic]]\nname = \"all\"\nclass = \"background\"\n\
         pattern = {{ kind = \"uniform\" }}\nload = 0.3\nsize = \"2 KiB\"\n{rest}"
    );
    Experiment::parse(&text, Path::new("export.toml")).unwrap_or_else(|error| panic!("{error}"))
}

fn conf(build: &str, settings: &str) -> OpensmConf {
    OpensmConf::of(&experiment(build, settings, "")).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(experiment: &Experiment) -> String {
    OpensmConf::of(experiment).expect_err("nothing to write").to_string()
}

/// Keys with their values, those of a service level under `key SL`; comments are gone. What OpenSM
/// would not read fails: a longer line, a key twice.
fn options(text: &str) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    for line in text.lines() {
        assert!(line.len() <= 1022, "{line}");
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(key) = words.next() else { continue };
        let values: Vec<&str> = words.collect();
        let (key, value) = match values.as_slice() {
            [value] => (key.to_owned(), *value),
            [level, value] => (format!("{key} {level}"), *value),
            _ => panic!("{line}"),
        };
        let before = options.insert(key, value.to_owned());
        assert_eq!(before, None, "{line}");
    }
    options
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// Ports whose bits a mask of 256 has.
fn ports(mask: &str) -> Vec<usize> {
    let digits = mask.strip_prefix("0x").unwrap();
    assert_eq!(digits.len(), 64, "{mask}");
    let bit = |port: &usize| {
        let digit = digits.chars().nth(63 - port / 4).unwrap();
        digit.to_digit(16).unwrap() >> (port % 4) & 1 == 1
    };
    (0..256).filter(bit).collect()
}

#[test]
fn a_published_preset_becomes_the_lines_that_opensm_has_for_it() {
    let conf = conf("leaf-spine:leaves=2,hosts=4,spines=2", "preset = \"gran-2010\"");
    let text = conf.text();
    assert!(text.starts_with("# Congestion control (iba-cc, preset gran-2010) of variant"));
    assert!(text.contains("\ncc_sw_cong_setting_threshold 0x0F\n"), "{text}");
    assert!(text.contains("\ncc_ca_cong_setting_ccti_timer 15 150\n"), "{text}");
    assert!(text.contains("\ncc_cct 0:0,0:1,0:2,"), "{text}");
    assert!(text.ends_with(",0:126,0:127\n"), "{text}");
    assert!(text.lines().filter(|line| line.starts_with('#')).all(|line| line.len() <= 90));
    let options = options(&text);
    assert_eq!(options["congestion_control"], "TRUE");
    assert_eq!(options["cc_sw_cong_setting_control_map"], "0x1F");
    assert_eq!(options["cc_ca_cong_setting_control_map"], "0xFFFF");
    // A site's own key is not replaced.
    assert!(!options.contains_key("cc_key"));
    // Eleven, four by service level, the table.
    assert_eq!(options.len(), 11 + 4 * 16 + 1);
}

#[test]
fn the_victim_mask_has_the_port_numbers_of_the_fabric() {
    let mask = |build: &str, word: &str| {
        let conf = conf(build, &format!("victim_mask = \"{word}\""));
        let options = options(&conf.text());
        assert_eq!(ports(&options["cc_sw_cong_setting_credit_mask"]), [] as [usize; 0]);
        (ports(&options["cc_sw_cong_setting_victim_mask"]), conf.unsaid)
    };
    // Leaves have hosts at ports 1 to 4 and spines at 5 and 6; spines have leaves at 1 and 2.
    let tree = "leaf-spine:leaves=2,hosts=4,spines=2";
    assert_eq!(mask(tree, "none"), (vec![], vec![]));
    assert_eq!(mask(tree, "all"), ((1..=6).collect(), vec![]));
    let (adapters, unsaid) = mask(tree, "adapters");
    assert_eq!(adapters, [1, 2, 3, 4]);
    let [wider] = unsaid.as_slice() else { panic!("{unsaid:?}") };
    assert!(wider.contains("face switches: spine00[1] and 3 more"), "{wider}");
    // Where no number means both, nothing is left to say.
    let ring = "ring:4x1";
    let (adapters, unsaid) = mask(ring, "adapters");
    assert_eq!((adapters.len(), unsaid.len()), (1, 0), "{unsaid:?}");
}

#[test]
fn what_the_options_cannot_say_is_said_in_the_file() {
    let settings = "victim_mask = \"none\"\n[[control.iba-cc.port]]\nport = \"leaf00[1]\"\n\
                    threshold = 3\nmarking_rate = 7";
    let rest = "[[variant]]\nname = \"both\"\ncontrol.which = \"drb\"\n";
    let conf = OpensmConf::of(&experiment("star:4", settings, rest)).unwrap();
    assert_eq!(
        conf.unsaid,
        [
            "no port can have settings of its own, left out are leaf00[1]: threshold 3, \
             marking_rate 7",
            "drb chooses paths, and OpenSM cannot set it",
        ]
    );
    let unwrapped = conf.text().replace("\n# ", " ");
    for sentence in &conf.unsaid {
        assert!(unwrapped.contains(sentence), "{unwrapped}");
    }
    // A port that is not there is found out before anything is written.
    let lost = settings.replace("leaf00[1]", "leaf00[9]");
    assert!(refusal(&experiment("star:4", &lost, "")).contains("leaf00[9]"));
}

#[test]
fn only_iba_cc_is_written_and_only_that_of_one_variant() {
    let other = "[[variant]]\nname = \"v\"\ncontrol.when = \"dcqcn\"\n";
    assert_eq!(
        refusal(&experiment("star:4", "", other)),
        "variant v: control.when = \"dcqcn\" cannot be written as options of opensm.conf: they set \
         iba-cc and no other mechanism; write when = \"iba-cc\""
    );
    let off = "[[variant]]\nname = \"off\"\ncontrol.when = \"none\"\n";
    let none = refusal(&experiment("star:4", "", off));
    assert!(none.starts_with("variant `off` has no congestion control; "), "{none}");
    let two = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n";
    let several = refusal(&experiment("star:4", "", &format!("{off}{two}")));
    assert_eq!(
        several,
        "2 variants have congestion control, and a file is for one: name it with --variant \
         (`a`, `b`)"
    );
    let one = "[[variant]]\nname = \"a\"\n";
    let conf = OpensmConf::of(&experiment("star:4", "", &format!("{off}{one}"))).unwrap();
    assert_eq!(conf.variant, "a");
}

/// Keys of a table of these entries.
fn given(entries: &[(u8, u16)]) -> String {
    let texts: Vec<String> = entries.iter().map(|(s, m)| format!("\"{s}:{m}\"")).collect();
    let limit = entries.len() - 1;
    format!("cct = \"given\"\nccti_limit = {limit}\ncct_entries = [{}]", texts.join(", "))
}

#[test]
fn what_opensm_would_cut_or_drop_is_an_error() {
    // 7 characters of key and blank, 127 entries of 7 and 126 commas: 1022.
    let whole = conf("star:4", &given(&[(3, 16_383); 127])).text();
    assert_eq!(whole.lines().map(str::len).max(), Some(1022));
    assert_eq!(
        refusal(&experiment("star:4", &given(&[(3, 16_383); 128]), "")),
        "variant as-is: control.iba-cc: the line of cc_cct has 1030 characters, and OpenSM reads \
         1022 of it; lower ccti_limit or write smaller multipliers"
    );
    assert!(conf("star:4", &given(&[(3, 0)])).text().ends_with("\ncc_cct 3:0\n"));
    let alone = refusal(&experiment("star:4", &given(&[(0, 5)]), ""));
    assert!(alone.contains("OpenSM sends no entry of a table of one"), "{alone}");
    assert!(conf("star:4", &given(&[(0, 5), (0, 6)])).text().ends_with("\ncc_cct 0:5,0:6\n"));
}

/// What `[control.iba-cc]` may have, and the table that follows from it.
#[derive(Clone, Debug)]
struct Settings {
    numbers: BTreeMap<&'static str, u64>,
    shared: bool,
    victims: &'static str,
    entries: Option<Vec<(u8, u16)>>,
}

fn settings() -> impl Strategy<Value = Settings> {
    let of_switches = (0u64..=15, 0u64..=65_535, 0u64..=255);
    let of_adapters = (1u64..=65_535, 0u64..=255, 0u64..=255);
    let table = prop::option::of(prop::collection::vec((0u8..4, 0u16..16_384), 1..=128));
    let limits = (0u64..128, 0u64..128);
    let words = (any::<bool>(), prop::sample::select(&["none", "adapters", "all"][..]));
    (of_switches, of_adapters, table, limits, words).prop_map(
        |((threshold, rate, size), (timer, increase, trigger), entries, (one, two), words)| {
            let (shared, victims) = words;
            let most = entries.as_ref().map_or(127, |entries| entries.len() as u64 - 1);
            let (min, limit) = (one.min(two).min(most), one.max(two).min(most));
            let numbers = BTreeMap::from([
                ("threshold", threshold),
                ("marking_rate", rate),
                ("packet_size", size),
                ("ccti_timer", timer),
                ("ccti_increase", increase),
                ("trigger_threshold", trigger),
                ("ccti_min", min),
                ("ccti_limit", limit),
            ]);
            Settings { numbers, shared, victims, entries }
        },
    )
}

impl Settings {
    fn keys(&self) -> String {
        let mut keys: String =
            self.numbers.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        let control = if self.shared { "sl" } else { "qp" };
        keys += &format!("port_control = \"{control}\"\nvictim_mask = \"{}\"\n", self.victims);
        if let Some(entries) = &self.entries {
            let texts: Vec<String> = entries.iter().map(|(s, m)| format!("\"{s}:{m}\"")).collect();
            keys += &format!("cct = \"given\"\ncct_entries = [{}]\n", texts.join(", "));
        }
        keys
    }

    /// The table from CCTI 0 to the limit.
    fn table(&self) -> Vec<(u8, u16)> {
        let linear = || (0..128).map(|ccti| (0, ccti)).collect();
        let mut entries = self.entries.clone().unwrap_or_else(linear);
        entries.truncate(self.numbers["ccti_limit"] as usize + 1);
        entries
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_set_reads_back_from_the_file_or_is_refused(settings in settings()) {
        let experiment = experiment("ring:4x1", &settings.keys(), "");
        let table = settings.table();
        let line = table.iter().map(|(s, m)| format!("{s}:{m}")).collect::<Vec<_>>().join(",");
        let fits = line.len() + 7 <= 1022 && (table.len() > 1 || table[0].1 == 0);
        let conf = match OpensmConf::of(&experiment) {
            Err(error) => {
                prop_assert!(!fits, "{}", error);
                return Ok(());
            }
            Ok(conf) => conf,
        };
        prop_assert!(fits);
        let options = options(&conf.text());
        let read = |key: &str| number(&options[key]);
        let set = &settings.numbers;
        prop_assert_eq!(read("cc_sw_cong_setting_threshold"), set["threshold"]);
        prop_assert_eq!(read("cc_sw_cong_setting_marking_rate"), set["marking_rate"]);
        prop_assert_eq!(read("cc_sw_cong_setting_packet_size"), set["packet_size"]);
        prop_assert_eq!(read("cc_ca_cong_setting_port_control"), u64::from(settings.shared));
        for level in 0..16 {
            for key in ["ccti_timer", "ccti_increase", "trigger_threshold", "ccti_min"] {
                prop_assert_eq!(read(&format!("cc_ca_cong_setting_{key} {level}")), set[key]);
            }
        }
        prop_assert_eq!(&options["cc_cct"], &line);
        let victims = ports(&options["cc_sw_cong_setting_victim_mask"]).len();
        prop_assert_eq!(victims, match settings.victims { "none" => 0, "adapters" => 1, _ => 3 });
    }
}
