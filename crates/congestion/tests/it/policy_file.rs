//! Policies: read, written, meant and drafted.

use clearlane_congestion::mechanisms::dcqcn::{self, ENTRY};
use clearlane_congestion::policy_file::keys::{self, Kind};
use clearlane_congestion::policy_file::{
    Block, CongestionControlPolicy as Policy, Item, Place, Setting, Written,
};
use clearlane_congestion::{Parameter, ParameterError, Value, Values};
use clearlane_ib::{BitsPerSecond, Bytes, Picoseconds};
use proptest::prelude::*;

const US: u64 = 1_000_000;
const MBPS: u64 = 1_000_000;

/// A small file with every block: five SLs mark by profile 2, the rest by profile 1.
const SMALL: &str = "\u{feff}# ours\r
ca_config_start \r
  group:ALL_CAS # all\r
    enable_notify: 1\r
  enable_react : 1\r
 enable_clamp_tgt_rate: 0\r
 enable_clamp_tgt_rate_after_time_inc:1\r
 rpg_time_reset: 250   \r
 rpg_byte_reset: 1000\r
 rpg_threshold: 3\r
 rpg_max_rate: 0\r
 rpg_ai_rate: 7\r
 rpg_hai_rate: 70\r
 rpg_gd: 12\r
 rpg_min_dec_fac: 40\r
 rpg_min_rate: 2\r
 rate_to_set_on_first_cnp: 9000\r
 dce_tcp_g: 1008\r
 dce_tcp_rtt: 6\r
 rate_reduce_monitor_period: 8\r
 initial_alpha_value: 256\r
 min_time_between_cnps: 5\r
 cnp_sl_mode: 1\r
 cnp_sl: 2\r
ca_config_end\r
switch_config_start\r
 group: ALL_SWITCHES\r
 enable: 1\r
 aqs_weight: 3\r
 aqs_time: 9\r
switch_config_end\r
profiles_start\r
 name: Storage\r
 mode: 0\r
 profile_start\r
  percent: 80\r
  min: 30000\r
  max: 90000\r
 profile_end\r
 profile_start\r
  percent: 50\r
  min: 10000\r
  max: 20000\r
 profile_end\r
profiles_end\r
sl_config_start\r
 group: SWITCH_PORTS\r
 sl_profiles: 2, 1,1,1,1,1,1,1,1,1,1,1,2,2,2,2\r
sl_config_end\r
vl_config_start\r
 group: SWITCH_PORTS\r
 vl_profiles: Storage\r
vl_config_end\r
";

fn read(text: &str) -> Policy {
    let (policy, oddities) = Policy::read(text, "cc.conf").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(oddities, []);
    policy
}

fn refusal(text: &str) -> String {
    Policy::read(text, "cc.conf").expect_err(text).to_string()
}

fn meant(text: &str) -> Values {
    read(text).meaning("cc.conf").unwrap_or_else(|e| panic!("{e}")).values
}

#[test]
fn odd_spacing_carriage_returns_comments_and_a_byte_order_mark_change_nothing() {
    let policy = read(SMALL);
    let adapters = policy.blocks(keys::CA_CONFIG).next().unwrap();
    let flag = adapters.setting("enable_clamp_tgt_rate_after_time_inc").unwrap();
    assert_eq!((&flag.written, flag.place.0), (&Written::Number(1), 7));
    assert_eq!(adapters.setting("group").unwrap().written, Written::Text("ALL_CAS".into()));
    let written = policy.write();
    assert!(written.starts_with("ca_config_start\n    group: ALL_CAS\n"), "{written}");
    assert!(written.contains("    profile_start\n        percent: 80\n"), "{written}");
    assert_eq!(read(&written), policy);
    assert_eq!(read(&written).write(), written);
}

/// By hand: 1000 x 64 B, 2^-(12 - 10), 40 %, 16/1024, 256/1024.
#[test]
fn every_key_of_adapters_becomes_its_parameter() {
    let meant = read(SMALL).meaning("cc.conf").unwrap();
    let values = &meant.values;
    let us = |of: &Parameter| values.time(of).0 / US;
    let mbps = |of: &Parameter| values.rate(of).0 / MBPS;
    assert_eq!(us(&dcqcn::INCREASE_TIMER), 250);
    assert_eq!(values.size(&dcqcn::BYTE_COUNTER), Bytes(64_000));
    assert_eq!(values.integer(&dcqcn::FAST_RECOVERY), 3);
    assert_eq!([mbps(&dcqcn::RATE_MAX), mbps(&dcqcn::RATE_AI), mbps(&dcqcn::RATE_HAI)], [0, 7, 70]);
    assert_eq!([mbps(&dcqcn::RATE_MIN), mbps(&dcqcn::RATE_FIRST)], [2, 9_000]);
    assert_eq!(values.number(&dcqcn::CUT), 0.25);
    assert_eq!(values.number(&dcqcn::KEPT_MIN), 0.4);
    assert_eq!(values.number(&dcqcn::G), 1.0 / 64.0);
    assert_eq!(values.number(&dcqcn::ALPHA_INITIAL), 0.25);
    assert_eq!(us(&dcqcn::ALPHA_TIMER), 6);
    assert_eq!(us(&dcqcn::CUT_INTERVAL), 8);
    assert_eq!((us(&dcqcn::CNP_INTERVAL), values.word(&dcqcn::CNP_INTERVAL_OF)), (5, "port"));
    assert_eq!(values.word(&dcqcn::CLAMP_TARGET), "after-rise");
    // SL 0 has profile 2.
    assert_eq!(values.number(&dcqcn::PMAX), 0.5);
    assert_eq!(
        [values.size(&dcqcn::KMIN), values.size(&dcqcn::KMAX)],
        [Bytes(10_000), Bytes(20_000)]
    );
    let flags = |always: &str, time: &str| {
        let text =
            SMALL.replace("enable_clamp_tgt_rate: 0", &format!("enable_clamp_tgt_rate: {always}"));
        let text = text.replace("after_time_inc:1", &format!("after_time_inc:{time}"));
        crate::policy_file::meant(&text).word(&dcqcn::CLAMP_TARGET)
    };
    assert_eq!(
        [flags("1", "0"), flags("1", "1"), flags("0", "0")],
        ["always", "always", "after-bytes"]
    );
    // 0 is the rate of the port, and no bytes at all.
    let text = SMALL.replace("first_cnp: 9000", "first_cnp: 0").replace("reset: 1000", "reset: 0");
    let zero = crate::policy_file::meant(&text);
    assert_eq!(zero.rate(&dcqcn::RATE_FIRST), BitsPerSecond(1_000_000 * MBPS));
    assert_eq!(zero.size(&dcqcn::BYTE_COUNTER), Bytes(1 << 40));
}

#[test]
fn what_cannot_be_simulated_is_said() {
    let said = |text: &str| read(text).meaning("cc.conf").unwrap().unsaid.join("\n");
    let small = said(SMALL);
    let sentences = [
        "notifications on an SL of their own (cnp_sl_mode, cnp_sl) are not simulated",
        "rpg_byte_reset is taken in units of 64 B",
        "where a link has less than the 9000 Mb/s",
        "SLs or VLs have different profiles; here all mark by that of SL 0 and VL 0, begun in \
         line 40",
        "min and max of a profile are taken as bytes",
        "alpha rises at each notification here",
        "the meaning of cnp_sl_mode, aqs_weight, aqs_time, mode is not published",
    ];
    for sentence in sentences {
        assert!(small.contains(sentence), "{sentence}\n{small}");
    }
    let off =
        SMALL.replace("enable_notify: 1", "enable_notify: 0").replace("react : 1", "react : 0");
    let off = said(&off);
    assert!(off.contains("enable_notify 0") && off.contains("enable_react 0"), "{off}");
    let why = |text: &str| read(text).meaning("cc.conf").unwrap().off;
    assert_eq!(why(SMALL), None);
    let react = why(&SMALL.replace("react : 1", "react : 0"));
    let told = "cc.conf:5: enable_react 0: sources do not slow down, so there is no congestion \
                control";
    assert_eq!(react.as_deref(), Some(told));
    let one =
        said(&SMALL.replace("sl_profiles: 2, 1,1,1,1,1,1,1,1,1,1,1,2,2,2,2", "sl_profiles: 1"));
    assert!(!one.contains("different profiles"), "{one}");
    let bare = said("ca_config_start\nrpg_gd: 11\nca_config_end\n");
    assert!(
        bare.contains("left out and taken as the firmware has them are enable_clamp_tgt_rate,")
    );
    assert!(bare.contains("there is no switch_config") && bare.contains("there are no profiles"));
    let unmarked = SMALL.replace("enable: 1", "enable: 0");
    assert!(said(&unmarked).contains("enable 0 keeps switches from marking"));
    assert_eq!(meant(&unmarked).size(&dcqcn::KMIN), Bytes(1 << 30));
    let two = format!("{SMALL}ca_config_start\n group: RACK1\n rpg_gd: 11\nca_config_end\n");
    assert!(said(&two).contains("2 blocks ca_config give adapters different settings; all have"));
}

#[test]
fn what_is_not_known_is_kept_and_told_with_its_line() {
    let text = "\
speed: 3
ca_config_start
 rpg_gdd: 11
 rpg_gd: 11
ca_config_end
ca_algo_import_start
  algo_start # first
    algo_id:1
  algo_end
ca_algo_import_end
";
    let (policy, oddities) = Policy::read(text, "cc.conf").unwrap();
    let said: Vec<String> = oddities.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "line 1: `speed` stands in no block and is kept as it is",
            "line 3: ca_config has no key `rpg_gdd` that is known here; it is kept as it is; the \
             nearest is `rpg_gd`",
            "line 6: ca_algo_import loads programmable algorithms, which are not simulated; it is \
             kept as it is",
        ]
    );
    let written = policy.write();
    for line in ["speed: 3", "    rpg_gdd: 11", "    algo_start # first", "    algo_id:1"] {
        assert!(written.lines().any(|of| of == line), "{line}\n{written}");
    }
    assert_eq!(Policy::read(&written, "cc.conf").unwrap().0, policy);
    let meaning = policy.meaning("cc.conf").unwrap();
    let rows: Vec<_> = meaning.rows.iter().map(|row| (row.line, row.note)).collect();
    assert_eq!(rows, [(1, "not known; kept as it is"), (3, "not known; kept as it is"), (4, "")]);
    assert!(meaning.unsaid.iter().any(|said| said.starts_with("programmable algorithms")));
}

#[test]
fn what_is_wrong_is_refused_with_line_and_remedy() {
    let block = |lines: &str| format!("ca_config_start\n{lines}\nca_config_end\n");
    let cases = [
        (
            "ca_config_start\nrpg_gd: 11\n".into(),
            "cc.conf:1: block `ca_config` does not end; the file may be cut off; end the block \
             with ca_config_end",
        ),
        (
            block("rpg_gd: 11\nrpg_gd: 11"),
            "cc.conf:3: `rpg_gd` of ca_config stands in line 2 too; drop one of the two",
        ),
        (
            block("rpg_time_reset: 300us"),
            "cc.conf:2: rpg_time_reset is `300us`, no whole number from 0 to 4294967295; write \
             digits alone; the unit is us",
        ),
        (
            block("rpg_ai_rate: 70000"),
            "cc.conf:2: rpg_ai_rate is `70000`, no whole number from 0 to 65535; write digits \
             alone; the unit is Mb/s",
        ),
        (
            block("rpg_threshold: -1"),
            "cc.conf:2: rpg_threshold is `-1`, no whole number from 0 to 255; write digits alone",
        ),
        (
            block("rpg_threshold:"),
            "cc.conf:2: `rpg_threshold` has no value; write key: value in one line",
        ),
        (
            block("rpg_threshold 3"),
            "cc.conf:2: `rpg_threshold 3` is neither `key: value` nor a block's edge; a policy \
             file has blocks such as ca_config_start … ca_config_end",
        ),
        (
            "ca_config_start\nswitch_config_start\n".into(),
            "cc.conf:2: ca_config, begun in line 1, has not ended at switch_config_start; end it \
             with ca_config_end",
        ),
        (
            "ca_config_start\nswitch_config_end\n".into(),
            "cc.conf:2: `switch_config_end` ends no block: ca_config is open; end ca_config, \
             begun in line 1, with ca_config_end",
        ),
        (
            "ca_config_end\n".into(),
            "cc.conf:1: `ca_config_end` ends no block; begin it with ca_config_start",
        ),
        (
            "profile_start\n".into(),
            "cc.conf:1: profile_start is in no set; put it between profiles_start and profiles_end",
        ),
        (
            "mlnx_congestion_control 2\n".into(),
            "cc.conf:1: `mlnx_congestion_control 2` is neither `key: value` nor a block's edge; \
             a policy file has blocks such as ca_config_start … ca_config_end",
        ),
    ];
    for (text, said) in cases {
        assert_eq!(refusal(&text), said);
    }
}

#[test]
fn what_no_other_block_has_is_refused() {
    let cases = [
        (
            SMALL.replace("2, 1,1", "3, 1,1"),
            "cc.conf:48: no set has a profile 3: the largest has 2; profiles are counted from 1; \
             add them, or write another number",
        ),
        (
            SMALL.replace("2, 1,1", "0, 1,1"),
            "cc.conf:48: no set has a profile 0: the largest has 2; profiles are counted from 1; \
             add them, or write another number",
        ),
        (
            SMALL.replace("2, 1,1", "1,1"),
            "cc.conf:48: sl_profiles has 15 numbers; write one for all SLs or 16 with commas",
        ),
        (
            SMALL.replace("vl_profiles: Storage", "vl_profiles: storage"),
            "cc.conf:52: no set of profiles has the name `storage`; the nearest is `Storage`",
        ),
        (
            SMALL.replace("vl_profiles: Storage", "vl_profiles: a,,b"),
            "cc.conf:52: vl_profiles is `a,,b`; write one name for all VLs or up to 16 with commas",
        ),
        (
            SMALL.replace(" name: Storage\r\n", ""),
            "cc.conf:32: a set of profiles has no name; write name: and one",
        ),
    ];
    for (text, said) in cases {
        assert_eq!(refusal(&text), said);
    }
}

#[test]
fn what_cannot_be_simulated_at_all_is_refused() {
    let cannot = |text: &str| read(text).meaning("cc.conf").expect_err(text).to_string();
    let cases = [
        (
            "rpg_gd: 12",
            "rpg_gd: 7",
            "cc.conf:14: rpg_gd 7 is outside 10 to 15; write a value that is simulated",
        ),
        (
            "rpg_min_rate: 2",
            "rpg_min_rate: 0",
            "cc.conf:16: rpg_min_rate 0: rate_min is outside 0.001 Gb/s to 1000 Gb/s; write a \
             value that is simulated",
        ),
        ("dce_tcp_rtt: 6", "dce_tcp_rtt: 0", "cc.conf:19: dce_tcp_rtt 0: alpha_timer is outside"),
        (
            "min: 10000",
            "min: 20001",
            "cc.conf:42: min 20001 is above max, 20000; lower it or raise max",
        ),
        ("max: 20000", "max: 99999999999", "cc.conf:43: max 99999999999: kmax is outside"),
        ("  max: 20000\r\n", "", "cc.conf:40: the profile lacks max; write max: and a number"),
    ];
    for (from, to, said) in cases {
        assert_eq!(SMALL.matches(from).count(), 1, "{from}");
        let error = cannot(&SMALL.replace(from, to));
        assert!(error.starts_with(said), "{error}\n{said}");
    }
}

/// The values of a preset.
fn preset(name: &str) -> Values {
    let mut values = Values::default();
    let preset = ENTRY.presets.iter().find(|preset| preset.name == name).unwrap();
    for (parameter, value) in preset.values {
        values.set(parameter, value.clone()).unwrap();
    }
    values
}

fn assert_same(left: &Values, right: &Values) {
    for parameter in ENTRY.parameters {
        assert_eq!(left.get(parameter), right.get(parameter), "{}", parameter.name);
    }
}

#[test]
fn the_firmware_preset_is_what_its_integers_mean() {
    let text = "ca_config_start\nenable_clamp_tgt_rate: 0\n\
        enable_clamp_tgt_rate_after_time_inc: 1\nrpg_time_reset: 300\nrpg_byte_reset: 32767\n\
        rpg_threshold: 1\nrpg_max_rate: 0\nrpg_ai_rate: 5\nrpg_hai_rate: 50\nrpg_gd: 11\n\
        rpg_min_dec_fac: 50\nrpg_min_rate: 1\nrate_to_set_on_first_cnp: 0\ndce_tcp_g: 1019\n\
        dce_tcp_rtt: 1\nrate_reduce_monitor_period: 4\ninitial_alpha_value: 1023\n\
        min_time_between_cnps: 4\nca_config_end\n";
    let firmware = preset("connectx-firmware");
    assert_same(&meant(text), &firmware);
    let (policy, said) = Policy::of(&firmware).unwrap();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("cnp_sl_mode, cnp_sl, aqs_weight, aqs_time and mode are left out"));
    assert_same(&policy.meaning("cc.conf").unwrap().values, &firmware);
}

/// The file of the firmware's values with one more, and what it says otherwise.
fn drafted(parameter: &Parameter, value: &Value) -> Result<(String, String), ParameterError> {
    let mut values = preset("connectx-firmware");
    values.set(parameter, value.clone()).unwrap();
    Policy::of(&values).map(|(policy, said)| (policy.write(), said.join("\n")))
}

/// A parameter, its value, the line that is written, and what is said of it: nothing if it is
/// exact.
static ROUNDED: &[(&Parameter, Value, &str, &str)] = &[
    (
        &dcqcn::CUT_INTERVAL,
        Value::Time(Picoseconds(0)),
        "rate_reduce_monitor_period: 1",
        "cut_interval is rounded",
    ),
    (
        &dcqcn::INCREASE_TIMER,
        Value::Time(Picoseconds(55_500_000)),
        "rpg_time_reset: 56",
        "increase_timer is rounded",
    ),
    (&dcqcn::BYTE_COUNTER, Value::Size(Bytes(10_000_000)), "rpg_byte_reset: 156250", ""),
    (&dcqcn::BYTE_COUNTER, Value::Size(Bytes(100)), "rpg_byte_reset: 2", "byte_counter is rounded"),
    (&dcqcn::BYTE_COUNTER, Value::Size(Bytes(1 << 40)), "rpg_byte_reset: 0", ""),
    (&dcqcn::G, Value::Number(1.0 / 256.0), "dce_tcp_g: 1020", ""),
    (&dcqcn::G, Value::Number(0.001), "dce_tcp_g: 1023", "g is rounded"),
    (
        &dcqcn::ALPHA_INITIAL,
        Value::Number(1.0),
        "initial_alpha_value: 1023",
        "alpha_initial is rounded",
    ),
    (&dcqcn::CUT, Value::Number(0.3), "rpg_gd: 12", "cut is rounded"),
    (&dcqcn::KEPT_MIN, Value::Number(0.333), "rpg_min_dec_fac: 33", "kept_min is rounded"),
    (
        &dcqcn::RATE_AI,
        Value::Rate(BitsPerSecond(1_400_000)),
        "rpg_ai_rate: 1",
        "rate_ai is rounded",
    ),
    (
        &dcqcn::RATE_MAX,
        Value::Rate(BitsPerSecond(400_000)),
        "rpg_max_rate: 1",
        "rate_max is rounded",
    ),
    (
        &dcqcn::RATE_FIRST,
        Value::Rate(BitsPerSecond(0)),
        "rate_to_set_on_first_cnp: 0",
        "rate_first 0",
    ),
    (&dcqcn::PMAX, Value::Number(0.01), "percent: 1", ""),
    (
        &dcqcn::CLAMP_TARGET,
        Value::Word("after-bytes"),
        "enable_clamp_tgt_rate_after_time_inc: 0",
        "",
    ),
];

#[test]
fn what_integers_cannot_say_is_rounded_and_said() {
    for (parameter, value, line, sentence) in ROUNDED {
        let (text, said) = drafted(parameter, value).unwrap();
        assert!(text.lines().any(|of| of.trim() == *line), "{line}\n{text}");
        let plain = said.lines().count() == 1;
        assert!(said.contains(sentence) && plain == sentence.is_empty(), "{line}: {said}");
    }
}

#[test]
fn what_no_integer_comes_near_to_is_refused() {
    let refused: &[(&Parameter, Value, &str)] = &[
        (
            &dcqcn::RATE_AI,
            Value::Rate(BitsPerSecond(65_536 * MBPS)),
            "rate_ai is 65536 in rpg_ai_rate of a policy file, which holds 65535; lower it",
        ),
        (
            &dcqcn::FAST_RECOVERY,
            Value::Integer(256),
            "fast_recovery is 256 in rpg_threshold of a policy file, which holds 255; lower it",
        ),
        (&dcqcn::CNP_INTERVAL, Value::Time(Picoseconds(65_536 * US)), "cnp_interval is 65536 in"),
        (
            &dcqcn::CUT,
            Value::Number(0.0),
            "cut is 0, and rpg_gd of a policy file says powers of two from 1 to 1/32",
        ),
    ];
    for (parameter, value, sentence) in refused {
        let error = drafted(parameter, value).unwrap_err().to_string();
        assert!(error.starts_with(sentence), "{error}");
    }
}

#[test]
fn a_policy_with_other_values_keeps_all_that_they_do_not_say() {
    let policy = read(SMALL);
    let meant = policy.meaning("cc.conf").unwrap().values;
    assert_eq!(policy.with(&meant, &meant).unwrap(), (policy.clone(), vec![]));
    let mut values = meant.clone();
    values.set(&dcqcn::RATE_AI, Value::Rate(BitsPerSecond(9_400_000))).unwrap();
    values.set(&dcqcn::KMAX, Value::Size(Bytes(70_000))).unwrap();
    let (changed, said) = policy.with(&meant, &values).unwrap();
    let rounded = "rate_ai is rounded: rpg_ai_rate 9 is the nearest there is";
    assert_eq!(said, [rounded, "kmax is written into all 2 blocks profile of the policy"]);
    let expected = SMALL.replace("rpg_ai_rate: 7", "rpg_ai_rate: 9");
    let expected = expected.replace("max: 90000", "max: 70000").replace("max: 20000", "max: 70000");
    assert_eq!(changed, read(&expected));
}

#[test]
fn what_has_no_block_or_several_is_said() {
    let rate = |values: &mut Values| {
        values.set(&dcqcn::RATE_AI, Value::Rate(BitsPerSecond(9 * MBPS))).unwrap();
        values.set(&dcqcn::CNP_INTERVAL_OF, Value::Word("qp")).unwrap();
    };
    let said = |text: &str| {
        let policy = read(text);
        let meant = policy.meaning("cc.conf").unwrap().values;
        let mut values = meant.clone();
        rate(&mut values);
        policy.with(&meant, &values).unwrap().1
    };
    let qp = "cnp_interval_of is qp: min_time_between_cnps is for a port as a whole";
    let none = "rate_ai is not written: the policy has no block ca_config; add one to it";
    assert_eq!(said("switch_config_start\nenable: 1\nswitch_config_end\n"), [qp, none]);
    let block = |group: &str| format!("ca_config_start\ngroup: {group}\nca_config_end\n");
    let several = "rate_ai is written into all 2 blocks ca_config of the policy";
    assert_eq!(said(&(block("ALL_CAS") + &block("RACK1"))), [qp, several]);
}

fn name() -> impl Strategy<Value = String> {
    "[A-Za-z][A-Za-z0-9_ .-]{0,12}[A-Za-z0-9]"
}

/// A value that a key may have; the one set has two profiles.
fn written(kind: Kind) -> BoxedStrategy<Written> {
    match kind {
        Kind::Number(most) => (0..=most).prop_map(Written::Number).boxed(),
        Kind::Text => name().prop_map(Written::Text).boxed(),
        Kind::Sets => {
            prop::collection::vec(Just("Set".to_owned()), 1..=16).prop_map(Written::Names).boxed()
        }
        Kind::Levels => prop_oneof![
            (1u64..=2).prop_map(|number| Written::Numbers(vec![number])),
            prop::collection::vec(1u64..=2, 16).prop_map(Written::Numbers),
        ]
        .boxed(),
    }
}

fn setting(key: &str, written: Written) -> Item {
    Item::Setting(Setting { key: key.to_owned(), written, place: Place(0) })
}

fn block(name: &str, items: Vec<Item>) -> Item {
    Item::Block(Block { name: name.to_owned(), place: Place(0), items })
}

/// A block with some of its keys and one that is not known.
fn known(of: &'static str) -> impl Strategy<Value = Item> {
    let keys = keys::of_block(of).unwrap();
    let some = prop::sample::subsequence((0..keys.len()).collect::<Vec<_>>(), 0..=keys.len());
    let some = some.prop_flat_map(move |some| {
        some.into_iter()
            .map(|index| written(keys[index].kind).prop_map(move |w| setting(keys[index].name, w)))
            .collect::<Vec<_>>()
    });
    (some, prop::option::of(("x_[a-z]{1,8}", name()))).prop_map(move |(mut items, unknown)| {
        items.extend(unknown.map(|(key, value)| setting(&key, Written::Text(value))));
        block(of, items)
    })
}

fn unknown() -> impl Strategy<Value = Item> {
    let lines = prop::collection::vec("[!-~][ -~]{0,20}[!-~]", 0..6);
    ("[a-z]{3,10}_x", lines).prop_map(|(name, lines)| {
        let end = format!("{name}_end");
        let lines = lines.into_iter().filter(|line| !line.starts_with(&end));
        block(&name, lines.map(Item::Verbatim).collect())
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let set =
        (known(keys::PROFILE), known(keys::PROFILE), 0u64..256).prop_map(|(one, two, mode)| {
            let named = setting("name", Written::Text("Set".into()));
            block(keys::PROFILES, vec![named, setting("mode", Written::Number(mode)), one, two])
        });
    let any = prop_oneof![
        known(keys::CA_CONFIG),
        known(keys::SWITCH_CONFIG),
        known(keys::SL_CONFIG),
        known(keys::VL_CONFIG),
        unknown(),
        ("[a-z]{1,9}", name()).prop_map(|(key, value)| setting(&key, Written::Text(value))),
    ];
    (set, prop::collection::vec(any, 0..8)).prop_map(|(set, mut items)| {
        items.push(set);
        Policy { items }
    })
}

/// Lines as files have them, and others.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        prop::sample::select(SMALL.lines().map(str::to_owned).collect::<Vec<_>>()),
        "[ -~]{0,20}",
        "[a-z_]{1,9}_(start|end)",
        "\\PC{0,8}: \\PC{0,8}",
        any::<String>(),
    ];
    prop::collection::vec(line, 0..40).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn what_is_written_reads_back_as_the_same(policy in policy()) {
        let written = policy.write();
        let (again, _) = Policy::read(&written, "cc.conf").unwrap();
        prop_assert_eq!(&again, &policy, "{}", written);
    }

    #[test]
    fn whatever_is_read_is_refused_in_a_line_or_comes_back(text in text()) {
        match Policy::read(&text, "cc.conf") {
            Err(error) => {
                let error = error.to_string();
                prop_assert!(!error.contains(char::is_control) && error.len() < 1_000, "{}", error);
            }
            Ok((policy, oddities)) => {
                let (again, _) = Policy::read(&policy.write(), "cc.conf").unwrap();
                prop_assert_eq!(&again, &policy);
                for oddity in oddities {
                    prop_assert!(!oddity.to_string().contains(char::is_control));
                }
                let _ = policy.meaning("cc.conf");
            }
        }
    }
}

#[test]
fn large_and_binary_files_end_soon() {
    assert!(refusal(&"\0".repeat(1 << 20)).len() < 500);
    assert!(refusal(&"a".repeat(1 << 20)).len() < 500);
    assert!(refusal(&"x_start\n".repeat(1 << 16)).len() < 500);
    let lines: String = (0..1 << 16).map(|number| format!("k{number}: {number}\n")).collect();
    let (policy, oddities) =
        Policy::read(&format!("ca_config_start\n{lines}ca_config_end\n"), "cc.conf").unwrap();
    assert_eq!(oddities.len(), 1 << 16);
    assert_eq!(policy.blocks(keys::CA_CONFIG).next().unwrap().items.len(), 1 << 16);
}
