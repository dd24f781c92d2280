//! `clearlane fabric cut`: a fabric with cables or boxes missing, or cables running slower.

use super::written::{self, Format};
use crate::answer::Answer;
use crate::failure::Failure;
use crate::site::{self, Site};
use crate::table::count;
use crate::writing::{self, Writing};
use clap::Args;
use clearlane_fabric::damage::{self, Choice};
use clearlane_fabric::{Fabric, LinkId};
use clearlane_ib::{LinkSpeed, LinkWidth};
use clearlane_lab::Unfinished;
use std::path::{Path, PathBuf};

/// What to cut.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    clearlane fabric cut site.topo 'leaf00[19]' spine03 -o cut.topo\n  \
    clearlane fabric cut fat-tree:648 --random 13 --seed 1 --keep-uplinks 9 -o cut.topo\n  \
    clearlane fabric cut site.topo 'leaf00[19]' --degrade 4xSDR -o slow.topo")]
pub struct Arguments {
    /// Fabric file, or a topology to build such as fat-tree:648
    #[arg(value_name = "FABRIC")]
    fabric: String,
    /// Cable by one end or both, leaf00[19] or leaf00[19]-spine03[1], or a whole node, spine03
    #[arg(value_name = "NAME", required_unless_present = "random", conflicts_with = "random")]
    names: Vec<String>,
    /// Choose this many cables between switches at random
    #[arg(long, value_name = "N")]
    random: Option<usize>,
    /// Seed of the random choice; with one seed, a larger choice contains every smaller one
    #[arg(long, value_name = "S", default_value_t = 1, conflicts_with = "names")]
    seed: u64,
    /// Leave each leaf switch at least this many cables to other switches
    #[arg(long, value_name = "K", default_value_t = 0, conflicts_with = "names")]
    keep_uplinks: u32,
    /// Set the cables to this width and speed instead of cutting them
    #[arg(long, value_name = "RATE", value_parser = rate)]
    degrade: Option<(LinkWidth, LinkSpeed)>,
    /// File to write; - is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    writing: Writing,
}

/// Cuts and writes.
pub fn run(arguments: &Arguments, json: bool, unfinished: &Unfinished) -> Result<Answer, Failure> {
    arguments.writing.files(&[&arguments.output], &[Path::new(&arguments.fabric)])?;
    let Site { mut fabric, name, .. } = site::open(&arguments.fabric)?;
    let (cables, nodes) = chosen(&fabric, arguments)?;
    let mut what: Vec<_> = cables.iter().map(|id| fabric.cable(fabric.link(*id))).collect();
    what.extend(nodes.iter().map(|id| fabric.node(*id).name.clone()));
    match arguments.degrade {
        Some((width, speed)) => damage::degrade(&mut fabric, &cables, width, speed),
        None => {
            damage::cut(&mut fabric, &cables);
            fabric = damage::without(&fabric, &nodes).map_err(Failure::input)?;
        }
    }
    let site = Site { fabric, oddities: Vec::new(), name };
    let (output, dry) = (&arguments.output, arguments.writing.dry_run);
    let answer = written::fabric(&site, output, &arguments.format, (dry, json), unfinished)?;
    if json || (writing::is_stdout(output) && !dry) {
        return Ok(answer);
    }
    let done = arguments.degrade.map_or("cut".into(), |(width, speed)| format!("{width} {speed}"));
    let list = shortened(&what);
    Ok(Answer::text(format!("{}{done}: {list}\n", answer.text)))
}

type Chosen = (Vec<LinkId>, Vec<clearlane_fabric::NodeId>);

/// Cables and nodes, named or at random.
fn chosen(fabric: &Fabric, arguments: &Arguments) -> Result<Chosen, Failure> {
    if let Some(links) = arguments.random {
        let uplinks_min = arguments.keep_uplinks;
        let choice = Choice { links, seed: arguments.seed, uplinks_min };
        let cables = damage::choose(fabric, &choice).map_err(Failure::input)?;
        return Ok((cables, Vec::new()));
    }
    let (cables, nodes): (Vec<&str>, Vec<&str>) =
        arguments.names.iter().map(String::as_str).partition(|name| name.contains('['));
    if let (Some(_), Some(node)) = (arguments.degrade, nodes.first()) {
        let line = format!("--degrade takes cables such as {node}[1], not the node {node}");
        return Err(Failure::Input(line));
    }
    let cables = damage::cables(fabric, &cables).map_err(Failure::input)?;
    let nodes: Result<Vec<_>, _> = nodes.iter().map(|name| damage::node(fabric, name)).collect();
    Ok((cables, nodes.map_err(Failure::input)?))
}

/// Names in a row, the first few.
fn shortened(names: &[String]) -> String {
    const SHOWN: usize = 6;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {}", count(more, "more", "more")),
    }
}

/// Reads `4xSDR`.
fn rate(text: &str) -> Result<(LinkWidth, LinkSpeed), String> {
    let at = text.find('x').map_or(text.len(), |at| at + 1);
    let (width, speed) = text.split_at(at);
    let rate = LinkWidth::from_name(width).zip(LinkSpeed::from_name(speed.trim()));
    rate.ok_or_else(|| {
        let speeds: Vec<_> = LinkSpeed::ALL.iter().map(|speed| speed.name()).collect();
        format!("write a width (1x, 2x, 4x, 8x, 12x) and a speed ({})", speeds.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_the_tools_write_them() {
        assert_eq!(rate("4xSDR"), Ok((LinkWidth::X4, LinkSpeed::Sdr)));
        assert_eq!(rate("12x QDR"), Ok((LinkWidth::X12, LinkSpeed::Qdr)));
        assert!(["", "x", "4x", "SDR", "5xSDR", "4xsdr"].iter().all(|text| rate(text).is_err()));
    }

    #[test]
    fn long_lists_are_cut_short() {
        let names: Vec<_> = (0..8).map(|n| format!("n{n}")).collect();
        assert_eq!(shortened(&names[..2]), "n0, n1");
        assert!(shortened(&names).ends_with("n5 and 2 more"));
    }
}
