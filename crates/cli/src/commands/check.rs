//! `clearlane check`: whether tables are sane, with proof, and how evenly they load the links.

use crate::answer::{Answer, Verdict};
use crate::arguments::between;
use crate::disjoint;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::routing::Routing;
use crate::site::{self, Names};
use crate::table::{Align, Table, count, grouped};
use clap::Args;
use clearlane_fabric::Fabric;
use clearlane_subnet::Subnet;
use clearlane_subnet::check::{
    Balance, BalanceOptions, CreditLoopReport, Disjointness, Permutations, ReachabilityReport,
    balance_told, credit_loop, disjointness, reachability,
};
use serde_json::{Value, json};

/// What to check.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit code 1 if a host cannot reach another or a credit loop is possible.\n\n\
    Examples:\n  clearlane check site.topo --lft site.lft\n  \
    clearlane check site.topo --engine fat-tree --random-permutations 1000 --seed 7\n  \
    clearlane check site.topo --lft lfts.txt --lft sl2vl.dump --lft psl.txt\n  \
    clearlane check torus:4x4x4 --engine dor --json"
)]
pub struct Arguments {
    /// Fabric file, or a topology to build such as fat-tree:648
    #[arg(value_name = "FABRIC")]
    fabric: String,
    #[command(flatten)]
    routing: Routing,
    /// Check this many random permutations, and this many random halvings for the bisection
    #[arg(long, value_name = "N", default_value_t = 50,
        value_parser = between(0u32, 1_000_000))]
    random_permutations: u32,
    /// Check a random sample of this many shift permutations instead of all
    #[arg(long, value_name = "N", value_parser = between(1u32, 1_000_000))]
    shifts: Option<u32>,
    /// Seed of the random permutations, halvings and sample
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = between(0u64, u64::MAX))]
    seed: u64,
    #[command(flatten)]
    names: Names,
}

/// What was found.
struct Findings {
    fabric: String,
    engine: String,
    notes: Vec<String>,
    remarks: Vec<String>,
    reachability: ReachabilityReport,
    credit_loop: CreditLoopReport,
    balance: Balance,
    /// Where hosts have several LIDs.
    disjointness: Option<Disjointness>,
}

/// Checks.
pub fn run(arguments: &Arguments, json: bool) -> Result<Answer, Failure> {
    let site = site::open_named(&arguments.fabric, &arguments.names)?;
    let progress = Progress::start("1 of 4: routing");
    let subnet = arguments.routing.subnet(&site.fabric)?;
    let findings = findings(arguments, site.name, &site.fabric, subnet, &progress);
    drop(progress);
    let verdict = if findings.is_sane() { Verdict::Done } else { Verdict::BadNews };
    let answer = if json {
        Answer::json("clearlane-check/1", findings.fields())
    } else {
        Answer::text(findings.text())
    };
    Ok(answer.with(verdict))
}

fn findings(
    arguments: &Arguments,
    name: String,
    fabric: &Fabric,
    subnet: Subnet,
    progress: &Progress,
) -> Findings {
    let random = arguments.random_permutations as usize;
    let options = BalanceOptions {
        shifts: arguments.shifts.map(|n| n as usize),
        permutations: random,
        matchings: random,
        seed: arguments.seed,
    };
    progress.label("2 of 4: walking every path");
    let reachability = reachability(fabric, &subnet);
    progress.label("3 of 4: looking for credit loops");
    let credit_loop = credit_loop(fabric, &subnet);
    progress.label("4 of 4: loading links with permutations");
    let balance = balance_told(fabric, &subnet, &options, &|share| progress.done(share));
    let several = subnet.lids.lmc_max().value() > 0;
    let disjointness = several.then(|| disjointness(fabric, &subnet));
    Findings {
        fabric: name,
        engine: subnet.engine,
        notes: subnet.notes,
        remarks: subnet.remarks,
        reachability,
        credit_loop,
        balance,
        disjointness,
    }
}

impl Findings {
    fn is_sane(&self) -> bool {
        self.reachability.is_sane() && self.credit_loop.is_sane()
    }

    fn text(&self) -> String {
        let paths = self.disjointness.as_ref().map_or(String::new(), disjoint::text);
        let mut text = self.reachability() + &self.credit_loops() + &paths + &self.balance();
        for note in &self.notes {
            text.push_str(&format!("engine       {note}\n"));
        }
        if !self.remarks.is_empty() {
            text.push_str(&format!("oddities     {}\n", self.remarks.len()));
        }
        for remark in &self.remarks {
            text.push_str(&format!("  {remark}\n"));
        }
        text + &format!("verdict      {}\n", self.verdict())
    }

    fn reachability(&self) -> String {
        let found = &self.reachability;
        let [reached, pairs] = [found.reached, found.pairs].map(grouped);
        let hosts = match found.adapters < found.hosts {
            true => {
                let ports = count(found.hosts, "port", "ports");
                format!("{ports} of {}", count(found.adapters, "host", "hosts"))
            }
            false => count(found.hosts, "host", "hosts"),
        };
        let lids = count(found.lids, "LID", "LIDs");
        let mut text = format!("reachable    {reached} of {pairs} paths, {hosts} with {lids}\n");
        let share = |count: u64| 100.0 * count as f64 / found.reached.max(1) as f64;
        let lengths = found.hops.iter().enumerate().filter(|(_, count)| **count > 0);
        let lengths: Vec<_> =
            lengths.map(|(hops, count)| format!("{hops} ({:.1} %)", share(*count))).collect();
        if !lengths.is_empty() {
            text.push_str(&format!("switches     {}\n", lengths.join(", ")));
        }
        for fault in &found.examples {
            text.push_str(&format!("  {}\n", fault.text));
        }
        if found.switches_unreached > 0 {
            let missing = paths(found.switches_unreached);
            text.push_str(&format!("management   {missing} to switches missing\n"));
        }
        text
    }

    fn credit_loops(&self) -> String {
        let found = &self.credit_loop;
        let lanes = count(usize::from(found.lanes), "lane", "lanes");
        let levels = count(found.levels, "service level", "service levels");
        let channels = count(found.channels, "channel", "channels");
        let Some(cycle) = &found.cycle else {
            return format!("deadlock     no credit loop among {channels} ({lanes}, {levels})\n");
        };
        let mut text = format!(
            "deadlock     credit loop of {} among {channels} ({lanes}, {levels}):\n",
            count(cycle.channels.len(), "channel", "channels")
        );
        for line in &cycle.lines {
            text.push_str(&format!("  {line}\n"));
        }
        text
    }

    fn balance(&self) -> String {
        let Balance { shifts, random, bisection, .. } = &self.balance;
        let mut table =
            Table::plain(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Left]);
        let rows = [("shift", shifts), ("random", random)];
        for (kind, found) in rows.iter().filter(|(_, found)| found.measured > 0) {
            if table.is_empty() {
                let worst = "flows on the worst link: mean";
                table.row([
                    "balance      permutations",
                    worst,
                    "most",
                    "no two on a link",
                    "worst",
                ]);
            }
            table.row(permutation_row(kind, found));
        }
        let mut text = table.to_string();
        let lost = shifts.lost + random.lost;
        if lost > 0 {
            let flows = if lost == 1 { "flow is" } else { "flows are" };
            text.push_str(&format!("lost         {} {flows} excluded: no path\n", grouped(lost)));
        }
        if bisection.matchings > 0 {
            let percent =
                [bisection.mean_share, bisection.least, bisection.most].map(|x| 100.0 * x);
            text.push_str(&format!(
                "bisection    {:.1} % of full bandwidth, {:.1} to {:.1} % over {}\n",
                percent[0],
                percent[1],
                percent[2],
                count(bisection.matchings, "random halving", "random halvings")
            ));
        }
        text
    }

    fn verdict(&self) -> String {
        let found = &self.reachability;
        let [no_entry, no_cable, wrong_end, loops] = found.faults;
        let ends = no_entry + no_cable + wrong_end;
        let mut faults = Vec::new();
        if found.without_lid > 0 {
            let hosts = count(found.without_lid, "host has", "hosts have");
            faults.push(format!("{hosts} no LID"));
        }
        if found.hosts < found.without_lid + 2 {
            faults.push("fewer than two hosts have LIDs; there is nothing to check".into());
        }
        if loops > 0 {
            faults.push(format!("{} go round in a loop", paths(loops)));
        }
        if ends > 0 {
            faults.push(format!("{} come to a dead end", paths(ends)));
        }
        if let Some(cycle) = &self.credit_loop.cycle {
            let length = cycle.channels.len();
            faults.push(format!("a credit loop of {length} channels can deadlock"));
        }
        if faults.is_empty() {
            return "sane: every host reaches every other, and no credit loop is possible".into();
        }
        format!("NOT sane: {}", faults.join("; "))
    }

    fn fields(&self) -> Value {
        let reachability = &self.reachability;
        let [no_entry, no_cable, wrong_end, loops] = reachability.faults;
        let examples: Vec<_> = reachability.examples.iter().map(|fault| &fault.text).collect();
        let loops_found = &self.credit_loop;
        let bisection = &self.balance.bisection;
        json!({
            "fabric": self.fabric,
            "engine": self.engine,
            "sane": self.is_sane(),
            "verdict": self.verdict(),
            "notes": self.notes,
            "oddities": self.remarks,
            "reachability": {
                "hosts": reachability.hosts,
                "adapters": reachability.adapters,
                "without_lid": reachability.without_lid,
                "lids": reachability.lids,
                "paths": reachability.pairs,
                "arrive": reachability.reached,
                "no_entry": no_entry,
                "no_cable": no_cable,
                "wrong_end": wrong_end,
                "loop": loops,
                "examples": examples,
                "paths_by_switches": reachability.hops,
                "switches_unreached": reachability.switches_unreached,
            },
            "credit_loop": {
                "channels": loops_found.channels,
                "dependencies": loops_found.dependencies,
                "lanes": loops_found.lanes,
                "service_levels": loops_found.levels,
                "entangled": loops_found.entangled,
                "cycle": loops_found.cycle.as_ref().map(|cycle| &cycle.lines),
            },
            "disjointness": self.disjointness.as_ref().map(disjoint::fields),
            "balance": {
                "shifts": permutations(&self.balance.shifts),
                "random": permutations(&self.balance.random),
                "bisection": {
                    "matchings": bisection.matchings,
                    "mean_share": bisection.mean_share,
                    "least": bisection.least,
                    "most": bisection.most,
                },
            },
        })
    }
}

fn paths(count: u64) -> String {
    format!("{} {}", grouped(count), if count == 1 { "path" } else { "paths" })
}

/// Number, mean and most flows on the worst link, share without contention, where.
fn permutation_row(kind: &str, found: &Permutations) -> [String; 5] {
    let free = 100.0 * found.contention_free as f64 / found.measured.max(1) as f64;
    let all = if found.measured < found.of { format!(" of {}", found.of) } else { String::new() };
    let place = found.worst.as_ref().map(|worst| {
        let number = worst.permutation;
        format!("{}, {kind} {number}", worst.name)
    });
    [
        format!("             {} {kind}{all}", found.measured),
        format!("{:.2}", found.mean),
        found.worst.as_ref().map_or(0, |worst| worst.flows).to_string(),
        format!("{free:.1} %"),
        place.unwrap_or_default(),
    ]
}

fn permutations(of: &Permutations) -> Value {
    let worst = of.worst.as_ref();
    json!({
        "measured": of.measured,
        "of": of.of,
        "mean": of.mean,
        "contention_free": of.contention_free,
        "worst": worst.map(|worst| worst.flows),
        "worst_link": worst.map(|worst| &worst.name),
        "worst_number": worst.map(|worst| worst.permutation),
        "lost": of.lost,
    })
}
