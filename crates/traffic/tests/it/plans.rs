//! Plans of tests.

use clearlane_lab::{Experiment, HostPlan};

/// A plan of hosts host0000, host0001, … at one switch; `traffic` are its groups, `more` whatever
/// else.
pub fn plan(hosts: u32, milliseconds: u64, traffic: &str, more: &str) -> HostPlan {
    let fabric = format!("build = \"star:{hosts},speed=1xSDR\"");
    let run = format!("duration = \"{milliseconds} ms\"\nwarm_up = \"0 s\"\nslices = 20");
    let text = format!(
        "schema = 1\nname = \"test\"\n[fabric]\n{fabric}\n[subnet]\nengine = \"min-hop\"\n\
         [sim]\npreset = \"sdr-2011\"\n[run]\n{run}\n{more}\n{traffic}"
    );
    let experiment = Experiment::parse(&text, "test.toml".as_ref()).unwrap();
    HostPlan::of(&experiment, None).unwrap()
}

/// A group in which everybody sends to host 0.
pub fn incast(load: f64, more: &str) -> String {
    format!(
        "[[traffic]]\nname = \"all\"\nclass = \"hot\"\npattern = {{ kind = \"incast\", to = 0 }}\n\
         senders = {{ except = [0] }}\nload = {load}\nsize = \"8 KiB\"\narrivals = \"periodic\"\n\
         {more}\n"
    )
}
