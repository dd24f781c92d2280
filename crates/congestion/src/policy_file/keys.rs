//! The keys of a policy file that are known: what they hold, what they mean, and the parameter of
//! DCQCN that each becomes.
//!
//! * `rpg_time_reset`: us between rises of the rate without a CNP. Source: mstflint, DOCA.
//! * `rpg_byte_reset`: bytes sent between them; 0: no such rises. Source: mstflint and Linux's
//!   dcbnl.h say bytes. Taken as units of 64 B, *assumed*: so google/isekai has it, which cites
//!   DOC-2790, and the default of 32767 is then 2 MB, as in Spirent's DCQCN profile; 32 KiB would
//!   pass in 2.6 us at 100 Gb/s.
//! * `rpg_threshold`: rises, counted for time and bytes apart, of fast recovery. Source: mstflint.
//! * `rpg_max_rate`: Mb/s at which the limit of a flow is released; 0: the port's. Source:
//!   mstflint.
//! * `rpg_ai_rate`, `rpg_hai_rate`: Mb/s added to the target in active and hyper increase. Source:
//!   mstflint.
//! * `rpg_gd`: log2 of Gd: a cut leaves (1 − alpha / Gd) of the rate, alpha in 1/1024; so 11 is
//!   alpha / 2. Source: mstflint, DOCA.
//! * `rpg_min_dec_fac`: percent of the rate that one cut leaves at least. Source: DOC-2790 with an
//!   example; mstflint.
//! * `rpg_min_rate`: Mb/s below which nothing is cut. Source: mstflint, DOCA.
//! * `rate_to_set_on_first_cnp`: Mb/s that the first CNP sets, as target too; 0: the port's.
//!   Source: mstflint; DOC-2790 for the target.
//! * `dce_tcp_g`: 1/1024 of alpha that an update keeps. Source: DOC-2790 and the default of 1019;
//!   older mstflint calls it the gain, default 64.
//! * `dce_tcp_rtt`: us between updates of alpha. Source: mstflint, DOCA.
//! * `rate_reduce_monitor_period`: least us between two cuts of a flow; a CNP before cuts at its
//!   end. Source: mstflint.
//! * `initial_alpha_value`: alpha at the first CNP in 1/1024. Source: mstflint, DOCA.
//! * `min_time_between_cnps`: least us between two CNPs of a port, whichever their queue pairs.
//!   Source: mstflint.
//! * `enable_clamp_tgt_rate`: each cut makes the rate before it the target. Source: DOCA, DOC-2790.
//! * `enable_clamp_tgt_rate_after_time_inc`: so does a cut after a rise by time; after one by bytes
//!   it always does. Source: mstflint.
//! * `percent`, `min`, `max`: probability of a mark at a queue of `max`, rising from 0 at `min`.
//!   Source: the names; *assumed*, as are bytes for `min` and `max`.
//!
//! What the firmware does by itself is that of these keys' defaults, the preset
//! `connectx-firmware`: NVIDIA DOCA, DCQCN CC Parameters, as mlxconfig lists them too.

use crate::mechanisms::dcqcn;
use crate::parameter::Parameter;

/// The block of adapters.
pub const CA_CONFIG: &str = "ca_config";
/// The block of switches.
pub const SWITCH_CONFIG: &str = "switch_config";
/// The block of a set of profiles.
pub const PROFILES: &str = "profiles";
/// The block of one profile in a set.
pub const PROFILE: &str = "profile";
/// The block that gives SLs their profiles.
pub const SL_CONFIG: &str = "sl_config";
/// The block that gives VLs their sets.
pub const VL_CONFIG: &str = "vl_config";
/// The block that loads programmable algorithms.
pub const CA_ALGO_IMPORT: &str = "ca_algo_import";

/// What a key holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A whole number from 0 to this, which is the width of the field in OpenSM or less.
    Number(u64),
    /// A number from 1 for all SLs, or 16 of them.
    Levels,
    /// The name of a set for all VLs, or up to 16 of them.
    Sets,
    /// A name.
    Text,
}

/// What becomes of a key in a simulation.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// It is this parameter.
    Parameter(&'static Parameter),
    /// It says whether or where the others hold.
    Structure,
    /// It is known what it does, and nothing here does it.
    NotSimulated,
    /// Its meaning is not published.
    Unknown,
}

/// A key.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Its unit; empty if it has none.
    pub unit: &'static str,
    /// What becomes of it.
    pub role: Role,
}

const fn number(name: &'static str, most: u64, unit: &'static str, role: Role) -> Key {
    Key { name, kind: Kind::Number(most), unit, role }
}

const fn flag(name: &'static str, role: Role) -> Key {
    Key { name, kind: Kind::Number(1), unit: "", role }
}

const GROUP: Key = Key { name: "group", kind: Kind::Text, unit: "", role: Role::Structure };

const U8: u64 = 0xff;
const U16: u64 = 0xffff;
const U32: u64 = 0xffff_ffff;

/// The keys of `ca_config`.
pub static OF_ADAPTERS: &[Key] = &[
    GROUP,
    flag("enable_notify", Role::Structure),
    flag("enable_react", Role::Structure),
    flag("enable_clamp_tgt_rate", Role::Parameter(&dcqcn::CLAMP_TARGET)),
    flag("enable_clamp_tgt_rate_after_time_inc", Role::Parameter(&dcqcn::CLAMP_TARGET)),
    number("rpg_time_reset", U32, "us", Role::Parameter(&dcqcn::INCREASE_TIMER)),
    number("rpg_byte_reset", U32, "64 B", Role::Parameter(&dcqcn::BYTE_COUNTER)),
    number("rpg_threshold", U8, "", Role::Parameter(&dcqcn::FAST_RECOVERY)),
    number("rpg_max_rate", U32, "Mb/s", Role::Parameter(&dcqcn::RATE_MAX)),
    number("rpg_ai_rate", U16, "Mb/s", Role::Parameter(&dcqcn::RATE_AI)),
    number("rpg_hai_rate", U16, "Mb/s", Role::Parameter(&dcqcn::RATE_HAI)),
    number("rpg_gd", U8, "log2", Role::Parameter(&dcqcn::CUT)),
    number("rpg_min_dec_fac", 100, "%", Role::Parameter(&dcqcn::KEPT_MIN)),
    number("rpg_min_rate", U32, "Mb/s", Role::Parameter(&dcqcn::RATE_MIN)),
    number("rate_to_set_on_first_cnp", U32, "Mb/s", Role::Parameter(&dcqcn::RATE_FIRST)),
    number("dce_tcp_g", 1023, "1/1024", Role::Parameter(&dcqcn::G)),
    number("dce_tcp_rtt", U32, "us", Role::Parameter(&dcqcn::ALPHA_TIMER)),
    number("rate_reduce_monitor_period", U32, "us", Role::Parameter(&dcqcn::CUT_INTERVAL)),
    number("initial_alpha_value", 1023, "1/1024", Role::Parameter(&dcqcn::ALPHA_INITIAL)),
    number("min_time_between_cnps", U16, "us", Role::Parameter(&dcqcn::CNP_INTERVAL)),
    flag("cnp_sl_mode", Role::Unknown),
    number("cnp_sl", 15, "", Role::NotSimulated),
];

/// The keys of `switch_config`.
pub static OF_SWITCHES: &[Key] = &[
    GROUP,
    flag("enable", Role::Structure),
    number("aqs_weight", U8, "", Role::Unknown),
    number("aqs_time", U8, "", Role::Unknown),
];

/// The keys of `profiles`.
pub static OF_SETS: &[Key] = &[
    Key { name: "name", kind: Kind::Text, unit: "", role: Role::Structure },
    number("mode", U8, "", Role::Unknown),
];

/// The keys of `profile`.
pub static OF_PROFILES: &[Key] = &[
    number("percent", 100, "%", Role::Parameter(&dcqcn::PMAX)),
    number("min", u64::MAX, "", Role::Parameter(&dcqcn::KMIN)),
    number("max", u64::MAX, "", Role::Parameter(&dcqcn::KMAX)),
];

/// The keys of `sl_config`.
pub static OF_LEVELS: &[Key] =
    &[GROUP, Key { name: "sl_profiles", kind: Kind::Levels, unit: "", role: Role::Structure }];

/// The keys of `vl_config`.
pub static OF_LANES: &[Key] =
    &[GROUP, Key { name: "vl_profiles", kind: Kind::Sets, unit: "", role: Role::Structure }];

/// The keys of a block; nothing if it is not known.
pub fn of_block(name: &str) -> Option<&'static [Key]> {
    Some(match name {
        CA_CONFIG => OF_ADAPTERS,
        SWITCH_CONFIG => OF_SWITCHES,
        PROFILES => OF_SETS,
        PROFILE => OF_PROFILES,
        SL_CONFIG => OF_LEVELS,
        VL_CONFIG => OF_LANES,
        _ => return None,
    })
}
