//! `clearlane fabric show`: sizes, rates, structure and oddities of a fabric.

use crate::answer::Answer;
use crate::failure::Failure;
use crate::site::{self, Names, Site};
use crate::table::count;
use clap::Args;
use clearlane_fabric::formats::Oddity;
use clearlane_fabric::{Fabric, Summary, structure};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What to show.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  ibnetdiscover > site.topo && clearlane fabric show site.topo\n  \
    clearlane fabric show torus:8x8\n\n\
    Files that are read: see `clearlane list formats`"
)]
pub struct Arguments {
    /// Fabric file, or a topology to build such as fat-tree:648
    #[arg(value_name = "FABRIC")]
    fabric: String,
    /// List every oddity, not only the first of each kind
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    names: Names,
}

/// Shows.
pub fn run(arguments: &Arguments, json: bool) -> Result<Answer, Failure> {
    let site = site::open_named(&arguments.fabric, &arguments.names)?;
    if json {
        return Ok(Answer::json("clearlane-fabric/1", fields(&site)));
    }
    Ok(Answer::text(text(&site, arguments.all)))
}

/// The summary of a fabric as JSON.
pub fn fields(site: &Site) -> Value {
    let Summary { switches, adapters, links, rates } = site.fabric.summary();
    let rates: Vec<_> = rates
        .iter()
        .map(|((width, speed), cables)| {
            json!({ "width": width.to_string(), "speed": speed.to_string(), "cables": cables })
        })
        .collect();
    let radix: Vec<_> = radix(&site.fabric)
        .iter()
        .map(|(ports, switches)| json!({ "ports": ports, "switches": switches }))
        .collect();
    let oddities: Vec<_> = site
        .oddities
        .iter()
        .map(|odd| json!({ "line": odd.line, "last_line": odd.last_line, "text": odd.text }))
        .collect();
    json!({
        "fabric": site.name,
        "hosts": adapters,
        "switches": switches,
        "cables": links,
        "rates": rates,
        "radix": radix,
        "structure": Structure::of(&site.fabric).fields(),
        "oddities": oddities,
    })
}

fn text(site: &Site, all: bool) -> String {
    let fabric = &site.fabric;
    let mut text = format!("{}\n", fabric.summary());
    let radix: Vec<_> = radix(fabric).iter().map(|(p, n)| format!("{n} × {p} ports")).collect();
    if !radix.is_empty() {
        text.push_str(&format!("switches   {}\n", radix.join(", ")));
    }
    text.push_str(&format!("structure  {}\n", Structure::of(fabric).sentence()));
    text.push_str(&format!("lids       {}\n", lids(fabric)));
    if site.oddities.is_empty() {
        text.push_str("oddities   none\n");
    } else {
        text.push_str(&format!("oddities   {}\n", site.oddities.len()));
        text.push_str(&oddities(&site.oddities, all));
    }
    text
}

/// Switches by number of ports.
fn radix(fabric: &Fabric) -> BTreeMap<u8, usize> {
    let mut radix = BTreeMap::new();
    for node in fabric.nodes().iter().filter(|node| node.is_switch()) {
        *radix.entry(node.port_count()).or_insert(0) += 1;
    }
    radix
}

fn lids(fabric: &Fabric) -> String {
    let lids = || fabric.nodes().iter().flat_map(|n| &n.ports).filter_map(|port| port.lid);
    match (lids().min(), lids().max()) {
        (Some(low), Some(high)) => {
            format!("{} from {low} to {high}", count(lids().count(), "base LID", "base LIDs"))
        }
        _ => "none given".into(),
    }
}

/// How many oddities of one kind are listed unless all are asked for.
const OF_A_KIND: usize = 4;

/// One line an oddity; of each kind the first few, then how many more.
fn oddities(oddities: &[Oddity], all: bool) -> String {
    let mut seen = BTreeMap::new();
    let mut text = String::new();
    for oddity in oddities {
        let of_kind = seen.entry(oddity.kind).or_insert(0);
        *of_kind += 1;
        if all || *of_kind <= OF_A_KIND {
            text.push_str(&format!("  {oddity}\n"));
        }
    }
    let hidden: usize = seen.values().map(|n: &usize| n.saturating_sub(OF_A_KIND)).sum();
    if !all && hidden > 0 {
        text.push_str(&format!("  and {hidden} more of the same kinds; --all lists them\n"));
    }
    text
}

/// What the cables make.
enum Structure {
    /// Switches per level, leaves first.
    Tree(Vec<usize>),
    /// Sizes and whether each dimension is a ring.
    Grid(Vec<u32>, Vec<bool>),
    /// Why it is neither: not a tree because, not a grid because.
    Neither(String, String),
}

impl Structure {
    fn of(fabric: &Fabric) -> Self {
        let not_tree = match structure::tree(fabric) {
            Ok(tree) => {
                let sizes = (0..tree.height()).map(|level| tree.switches(level).len());
                return Structure::Tree(sizes.collect());
            }
            Err(error) => error.to_string(),
        };
        match structure::grid(fabric) {
            Ok(grid) => Structure::Grid(grid.dims, grid.wraps),
            Err(error) => Structure::Neither(not_tree, error.to_string()),
        }
    }

    fn fields(&self) -> Value {
        match self {
            Structure::Tree(levels) => json!({ "kind": "tree", "switches_by_level": levels }),
            Structure::Grid(dims, wraps) => {
                json!({ "kind": "grid", "dimensions": dims, "wraps": wraps })
            }
            Structure::Neither(tree, grid) => {
                json!({ "kind": "neither", "not_a_tree": tree, "not_a_grid": grid })
            }
        }
    }

    fn sentence(&self) -> String {
        match self {
            Structure::Tree(levels) => {
                let above = levels.iter().skip(1).map(|n| format!(", {n} above"));
                let height = count(levels.len(), "level", "levels");
                let leaves = levels.first().copied().unwrap_or(0);
                let leaves = count(leaves, "leaf switch", "leaf switches");
                format!("tree of {height}: {leaves}{}", above.collect::<String>())
            }
            Structure::Grid(dims, wraps) => {
                let sizes: Vec<_> = dims.iter().map(u32::to_string).collect();
                let word = match (wraps.iter().any(|w| *w), wraps.iter().all(|w| *w)) {
                    (false, _) => "mesh",
                    (_, true) => "torus",
                    _ => "grid, partly wrapped,",
                };
                format!("{word} of {}", sizes.join(" × "))
            }
            Structure::Neither(tree, grid) => {
                format!("irregular topology\n             {tree}\n             {grid}")
            }
        }
    }
}
