//! What holds in every network whichever mechanisms are in it: each of the registry with its
//! defaults and with each preset, alone and composed, in a few small scenarios.

use clearlane_congestion::{Decides, Entry, Preset, Values, mechanisms};
use clearlane_ib::{Bytes, Lmc, Picoseconds};
use clearlane_lab::{Experiment, MechanismSpec, Quiet, RunOptions, RunResult, SeedResult, run};
use clearlane_sim::{
    Ending, Forwarding, GroupSettings, Hosts, Mechanisms, Outcome, Parameters, Recording, Setup,
    Simulation, preset,
};
use clearlane_subnet::engines::{self, RouteOptions};
use clearlane_workload::{Event, Filter, Hints, Op, Rank, RankProgram, Transport};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The rate of every link, Gb/s.
const RATE: u64 = 16;

/// A mechanism with its defaults or with the values of one of its presets.
#[derive(Clone, Copy)]
struct Setting {
    entry: &'static Entry,
    preset: Option<&'static Preset>,
}

/// One setting for each decision, or none.
type Settings = [Option<Setting>; 2];

/// All settings of the mechanisms that make this decision; the first is that there is none.
fn deciding(decides: Decides) -> Vec<Option<Setting>> {
    let entries = mechanisms::ALL.iter().filter(|entry| entry.decides == decides);
    let does = entries.filter(|entry| entry.name != mechanisms::none::ENTRY.name);
    let presets = |entry: &'static Entry| {
        let named = entry.presets.iter().map(Some);
        std::iter::once(None).chain(named).map(move |preset| Some(Setting { entry, preset }))
    };
    std::iter::once(None).chain(does.flat_map(|entry| presets(entry))).collect()
}

/// Nothing at all first, then each mechanism alone and each that decides when with each that
/// decides which.
fn all_settings() -> Vec<Settings> {
    let which = deciding(Decides::Which);
    let beside = |when| which.iter().map(move |which| [when, *which]).collect::<Vec<_>>();
    deciding(Decides::When).into_iter().flat_map(beside).collect()
}

fn name(settings: &Settings) -> String {
    let one = |setting: &Option<Setting>| match setting {
        None => "none".to_owned(),
        Some(Setting { entry, preset }) => {
            let preset = preset.map_or(String::new(), |preset| format!(" {}", preset.name));
            entry.name.to_owned() + &preset
        }
    };
    settings.each_ref().map(one).join(", ")
}

/// `head` with a variant for each of `settings`.
fn experiment(head: &str, settings: &[Settings]) -> Experiment {
    let mut text = format!(
        "schema = 1\n{head}\n[run]\nduration = \"400 ms\"\n[sim]\npreset = \"qdr\"\n\
         link_rate = \"{RATE} Gb/s\"\nbuffer = \"16 KiB\"\n"
    );
    for settings in settings {
        text += &format!("[[variant]]\nname = \"{}\"\n", name(settings));
        for (key, setting) in ["when", "which"].iter().zip(settings) {
            let Some(Setting { entry, preset }) = setting else { continue };
            text += &format!("control.{key} = \"{}\"\n", entry.name);
            if let Some(preset) = preset {
                text += &format!("control.{}.preset = \"{}\"\n", entry.name, preset.name);
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/corpus.toml");
    Experiment::parse(&text, &path).unwrap_or_else(|error| panic!("{error}"))
}

fn result(experiment: &Experiment, jobs: usize) -> RunResult {
    let options = RunOptions::new(jobs, "clearlane run corpus.toml");
    run(experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap()
}

/// Payload that arrived, by group.
fn delivered(run: &SeedResult) -> Vec<u64> {
    let sum = |slices: &Vec<clearlane_lab::measure::SeriesSlice>| {
        slices.iter().map(|slice| slice.delivered_payload_bytes).sum()
    };
    run.figures.series.iter().map(sum).collect()
}

/// Fails unless all that was posted arrived, and nothing else, at no more than the links' rate.
fn sound(variant: &str, run: &SeedResult, plain: &SeedResult) {
    assert_eq!(run.ending, Ending::Drained, "{variant}");
    let t = &run.totals;
    assert_eq!(t.messages_posted, t.messages_delivered, "{variant}");
    assert_eq!(t.packets_injected, t.packets_delivered, "{variant}");
    assert_eq!(t.acks_injected, t.acks_delivered, "{variant}");
    assert_eq!(t.cnps_injected, t.cnps_delivered, "{variant}");
    // Mechanisms do not change what is asked for, and paths do not change what arrives.
    assert_eq!(t.messages_posted, plain.totals.messages_posted, "{variant}");
    assert_eq!(delivered(run), delivered(plain), "{variant}");
    for channel in &run.figures.channels {
        // PortXmitData is in units of 4 bytes and leaves out the VCRC of 2.
        let bytes = channel.port_xmit_data * 4 + channel.port_xmit_pkts * 2;
        let busy_ps = bytes * 8 * 1000 / RATE;
        // A datagram has arrived for the simulator once it has its last link: a run may be over
        // before the tail of one of 2082 bytes is.
        let tail_ps = 2082 * 8 * 1000 / RATE;
        assert!(
            busy_ps <= run.simulated.0 + tail_ps,
            "{variant}: {channel:?} in {}",
            run.simulated
        );
        assert!((0.0..=1.0).contains(&channel.load), "{variant}: {channel:?}");
        assert!((0.0..=1.0).contains(&channel.wait), "{variant}: {channel:?}");
    }
}

const ON_A_TREE: &str = "name = \"incast\"
        fabric = { build = \"leaf-spine:leaves=3,spines=2,hosts=3\" }
        subnet = { engine = \"fat-tree\", lmc = 1 }
        traffic = [{ name = \"hot\", class = \"hot\", pattern = { kind = \"incast\", to = 0 },
            senders = { except = [0] }, load = 1.0, size = \"2 KiB\", transport = \"ud\",
            stop = \"30 us\" }]";

/// Runs a scenario with all settings, on one thread and on three.
fn holds(head: &str) -> RunResult {
    let experiment = experiment(head, &all_settings());
    let result = self::result(&experiment, 1);
    let plain = &result.variants[0].runs[0];
    assert!(plain.totals.messages_posted > 50, "{}", plain.totals.messages_posted);
    assert_eq!((plain.totals.packets_marked, plain.totals.becns), (0, 0));
    for variant in &result.variants {
        sound(&variant.name, &variant.runs[0], plain);
    }
    assert!(result.to_json() == self::result(&experiment, 3).to_json(), "bytes differ");
    result
}

/// How many variants had packets marked.
fn marking(result: &RunResult) -> usize {
    let marks = |run: &SeedResult| run.totals.packets_marked > 0;
    result.variants.iter().filter(|variant| marks(&variant.runs[0])).count()
}

/// What the reader makes of the corpus holds every mechanism of the registry with its defaults and
/// with each preset, alone and beside another.
#[test]
fn every_mechanism_is_in_the_corpus() {
    let corpus = experiment(ON_A_TREE, &all_settings());
    for entry in mechanisms::ALL.iter().filter(|entry| entry.name != "none") {
        let presets = entry.presets.iter().map(|preset| (Some(preset.name), preset.values));
        for (preset, set) in presets.chain([(None, &[][..])]) {
            let mut values = Values::default();
            for (parameter, value) in set {
                values.set(parameter, value.clone()).unwrap();
            }
            let wanted = format!("{:?}", (entry.build)(&values).unwrap());
            let has = |mechanism: &MechanismSpec| {
                mechanism.entry.name == entry.name
                    && mechanism.preset.map(|preset| preset.name) == preset
                    && format!("{:?}", (entry.build)(&mechanism.values).unwrap()) == wanted
            };
            let with = corpus.variants.iter().filter(|variant| variant.control.all().any(has));
            let beside: Vec<usize> = with.map(|variant| variant.control.all().count()).collect();
            let alone = beside.iter().filter(|count| **count == 1).count();
            let composed = beside.iter().filter(|count| **count == 2).count();
            assert!(alone == 1 && composed > 0, "{} {preset:?}: {beside:?}", entry.name);
        }
    }
}

#[test]
fn a_parking_lot() {
    let result = holds(
        "name = \"lot\"
        fabric = { file = \"../fixtures/parking-lot.topo\" }
        subnet = { engine = \"min-hop\", lmc = 1 }
        traffic = [{ name = \"hot\", class = \"hot\", pattern = { kind = \"incast\", to = \"H4\" },
            senders = { except = [\"H4\"] }, load = 1.0, size = \"4 KiB\", stop = \"60 us\" }]",
    );
    assert!(marking(&result) > 10, "{}", marking(&result));
}

#[test]
fn an_incast_on_a_tree() {
    let result = holds(ON_A_TREE);
    assert!(marking(&result) > 10, "{}", marking(&result));
}

#[test]
fn a_hot_path_on_a_torus_of_many_paths() {
    let result = holds(
        "name = \"path\"
        fabric = { build = \"torus:4x4\" }
        subnet = { engine = \"multipath\", lmc = 2, lanes = 8 }
        traffic = [{ name = \"hot\", class = \"hot\", load = 1.0, size = \"2 KiB\",
            pattern = { kind = \"path-hot-spot\", pairs = 2 }, stop = \"80 us\" }]",
    );
    assert!(marking(&result) > 10, "{}", marking(&result));
    let facts = |variant: &clearlane_lab::VariantResult| variant.runs[0].figures.flows.len();
    assert!(result.variants.iter().all(|variant| facts(variant) == 2));
}

#[test]
fn uniform_traffic_on_a_torus() {
    holds(
        "name = \"uniform\"
        fabric = { build = \"torus:4x4\" }
        subnet = { engine = \"dor\", lanes = 2 }
        traffic = [{ name = \"all\", class = \"background\", load = 0.3, size = \"2 KiB\",
            pattern = { kind = \"uniform\" }, stop = \"30 us\" }]",
    );
}

#[test]
fn hot_flows_and_victims_on_a_tree() {
    let result = holds(
        "name = \"mixed\"
        fabric = { build = \"leaf-spine:leaves=3,spines=2,hosts=3\" }
        subnet = { engine = \"multipath\", lmc = 1, lanes = 2 }
        traffic = [
          { name = \"hot\", class = \"hot\", pattern = { kind = \"incast\", to = 0 }, load = 1.0,
            senders = { every = 2, offset = 1 }, size = \"4 KiB\", stop = \"30 us\" },
          { name = \"victims\", class = \"victim\", pattern = { kind = \"uniform\" }, load = 0.3,
            senders = { every = 2 }, size = { min = \"64 B\", max = \"4 KiB\" },
            stop = \"30 us\" }]",
    );
    assert!(marking(&result) > 10, "{}", marking(&result));
}

const MESSAGES: u32 = 60;
/// A receiver waits for every so many messages and asks for those before it afterwards.
const STRIDE: u32 = 4;

/// Sends numbered messages as the link takes them.
struct Sender {
    to: u32,
    next: u32,
}

impl RankProgram for Sender {
    fn step(&mut self, now: Picoseconds, _: Event) -> Op {
        let due = u64::from(self.next) * 1_000_000;
        if self.next == MESSAGES {
            return Op::Done;
        }
        if now.0 < due {
            return Op::WaitUntil(Picoseconds(due));
        }
        self.next += 1;
        let (dst, tag) = (Rank(self.to), self.next - 1);
        let hints = Hints::default();
        Op::Send { dst, bytes: 5000, tag, context: 0, group: 0, tracked: false, hints }
    }
}

/// Receives the last message of each stride first: the others must have come before.
struct Receiver {
    from: u32,
    taken: u32,
    posted: Picoseconds,
    late: Arc<AtomicU64>,
}

impl RankProgram for Receiver {
    fn step(&mut self, now: Picoseconds, event: Event) -> Op {
        match event {
            Event::Posted(receive) => {
                self.posted = now;
                return Op::Wait(receive);
            }
            Event::Completed(_) => {
                // One that is there is had in an instant: an operation takes 1 ps.
                let first = self.taken.is_multiple_of(STRIDE);
                let waited = !first && now.0 > self.posted.0 + 2;
                self.late.fetch_add(waited.into(), Ordering::Relaxed);
                self.taken += 1;
            }
            _ => {}
        }
        if self.taken == MESSAGES {
            return Op::Done;
        }
        let (stride, place) = (self.taken / STRIDE, self.taken % STRIDE);
        let tag = stride * STRIDE + if place == 0 { STRIDE - 1 } else { place - 1 };
        let filter = Filter { source: Some(Rank(self.from)), tag: Some(tag), context: 0 };
        Op::Recv { filter, stream: 0 }
    }
}

fn mechanism(setting: Option<Setting>) -> Option<Box<dyn clearlane_congestion::Mechanism>> {
    let Setting { entry, preset } = setting?;
    let mut values = Values::default();
    for (parameter, value) in preset.iter().flat_map(|preset| preset.values) {
        values.set(parameter, value.clone()).unwrap();
    }
    Some((entry.build)(&values).unwrap())
}

/// Two flows whose default routes share a link; returns how many messages came out of order too.
fn two_flows(settings: &Settings, width: u32) -> (Outcome, u64) {
    let fabric = clearlane_fabric::topologies::build("torus:4x4").unwrap();
    let options = RouteOptions { lmc: Lmc::new(2).unwrap(), lanes: 6, ..RouteOptions::default() };
    let subnet = engines::route("multipath", &fabric, &options).unwrap();
    let late = Arc::new(AtomicU64::new(0));
    // Rank x + 4 y is at (x, y): both take the link from (1, 0) to (2, 0).
    let program = |rank: u32| -> Box<dyn RankProgram> {
        let receiver =
            |from| Receiver { from, taken: 0, posted: Picoseconds(0), late: late.clone() };
        match rank {
            0 => Box::new(Sender { to: 6, next: 0 }),
            1 => Box::new(Sender { to: 10, next: 0 }),
            6 => Box::new(receiver(0)),
            10 => Box::new(receiver(1)),
            _ => Box::new(Sender { to: 0, next: MESSAGES }),
        }
    };
    let base = (preset::by_name("qdr").unwrap().parameters)();
    let parameters =
        Parameters { buffer: Bytes(16 << 10), receive_overhead: Picoseconds(0), ..base };
    let [when, which] = settings.map(mechanism);
    let mut simulation = Simulation::new(Setup {
        fabric: &fabric,
        forwarding: Forwarding::Tables(&subnet),
        parameters,
        groups: vec![GroupSettings { transport: Transport::Rc, sl: None }],
        programs: (0..Hosts::of(&fabric).count() as u32).map(program).collect(),
        recording: Recording::TOTALS,
        control: Some(Mechanisms { when, which, seed: 7 }),
        queue_width_log2: width,
        division: clearlane_sim::Division::WHOLE,
        fleet: None,
        taps: Vec::new(),
        dead_pairs: false,
        jobs: Vec::new(),
        ends_with_jobs: false,
    })
    .unwrap();
    simulation.run_until(Picoseconds(1_000_000_000_000));
    let outcome = simulation.finish();
    (outcome, late.load(Ordering::Relaxed))
}

#[test]
fn messages_of_a_flow_arrive_in_the_order_they_were_posted_in() {
    let mut spread = 0;
    let plain = two_flows(&[None, None], 13).0.totals;
    for settings in all_settings() {
        let name = name(&settings);
        let (outcome, late) = two_flows(&settings, 13);
        assert_eq!(outcome.ending, Ending::Drained, "{name}");
        assert_eq!(outcome.totals.messages_delivered, 2 * u64::from(MESSAGES), "{name}");
        assert_eq!(late, 0, "{name}");
        let (other, _) = two_flows(&settings, 9);
        assert_eq!(other.totals, outcome.totals, "{name}");
        // Other paths are longer: a message that took one made more hops.
        spread += u32::from(outcome.totals.packet_hops > plain.packet_hops);
    }
    assert!(spread > 2, "only {spread} settings used a second path");
}
