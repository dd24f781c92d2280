//! `clearlane route`: forwarding tables and everything OpenSM and ibdmchk need to take them.

use crate::answer::Answer;
use crate::best::Best;
use crate::compared::Compared;
use crate::disjoint;
use crate::failure::Failure;
use crate::files::{self, Content};
use crate::progress::Progress;
use crate::routing::Routing;
use crate::site::{self, Names};
use crate::table::{Align, Table, count, wrap};
use crate::writing::Writing;
use clap::Args;
use clearlane_fabric::{Fabric, NodeKind};
use clearlane_lab::Unfinished;
use clearlane_subnet::check::{Disjointness, credit_loop, disjointness, reachability};
use clearlane_subnet::formats::{fdbs, guid2lid, lfts, path_groups, path_sl, sl2vl, subnet_lst};
use clearlane_subnet::{PathSl, Subnet};
use serde_json::json;
use std::path::{Path, PathBuf};

/// What to route.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    clearlane route site.topo --engine fat-tree -o deploy\n  \
    clearlane route site.topo --best --lft site.lft -o deploy\n  \
    clearlane route torus:4x4x4 --engine dor -o torus\n  \
    clearlane route site.topo --engine fat-tree --lft site.lft -o deploy   # and compare\n  \
    clearlane route fat-tree:648 --engine min-hop --lmc 2 -o tables\n  \
    clearlane route torus:8x8 --engine multipath --lmc 2 -o paths\n\n\
    Engines: see `clearlane list engines` and `clearlane explain dor`")]
pub struct Arguments {
    /// Fabric file, or a topology to build such as fat-tree:648
    #[arg(value_name = "FABRIC")]
    fabric: String,
    #[command(flatten)]
    routing: Routing,
    /// Try every engine and take the one that loads links most evenly, of those without a credit
    /// loop. Without --lanes each has the lanes it needs; the table says how many
    #[arg(long, conflicts_with_all = ["engine", "adaptive", "root"])]
    best: bool,
    /// Folder to write
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    writing: Writing,
    #[command(flatten)]
    names: Names,
}

/// What is written, and what each file is for.
const FILES: &[(&str, &str)] = &[
    ("lfts.txt", "forwarding tables for `opensm -R file -U lfts.txt`"),
    ("guid2lid", "LIDs the tables are for; OpenSM takes them from its cache folder"),
    ("sl2vl.dump", "virtual lane by input, output and service level"),
    ("psl.txt", "service level by source and destination, for `ibdmchk -c`"),
    ("path-groups.txt", "service level by groups of hosts, for the plug-in of OpenSM"),
    ("opensm.fdbs", "the tables with hops, for `ibdmchk -f`"),
    ("opensm-subnet.lst", "the cables, for `ibdmchk -s`"),
    ("README", "what to do with these files"),
];

/// Lines of psl.txt up to which it is written even where it says nothing that path-groups.txt does
/// not say in few lines.
const LEVELS_LINES_MAX: u64 = 4_000_000;

/// Routes and writes.
pub fn run(arguments: &Arguments, json: bool, unfinished: &Unfinished) -> Result<Answer, Failure> {
    may_write(arguments)?;
    let site = site::open_named(&arguments.fabric, &arguments.names)?;
    let fabric = &site.fabric;
    let progress = Progress::start("1 of 3: routing");
    let best = arguments.best.then(|| Best::of(fabric, &arguments.routing));
    let best_one = best.as_ref().map(|best| Ok(arguments.routing.with_engine(best.engine()?)));
    let chosen = best_one.transpose()?;
    let chosen = chosen.as_ref().unwrap_or(&arguments.routing);
    let subnet = chosen.new_subnet(fabric)?;
    let current = chosen.current(fabric)?;
    progress.label("2 of 3: walking every path");
    check_paths(fabric, &subnet)?;
    let has_loop = check_loops(fabric, &subnet, arguments.writing.force)?;
    let compared = current.map(|current| Compared::of(fabric, &current, &subnet));
    progress.label("3 of 3: writing");
    let contents = contents(fabric, &subnet);
    if !arguments.writing.dry_run {
        // Somebody may have put a file there meanwhile.
        may_write(arguments)?;
        files::write_folder(&arguments.output, &contents, unfinished)?;
    }
    let several = subnet.lids.lmc_max().value() > 0;
    let paths = several.then(|| disjointness(fabric, &subnet));
    drop(progress);
    let names: Vec<&str> = contents.iter().map(|(name, _)| *name).collect();
    if json {
        let fields = json!({
            "fabric": site.name,
            "engine": subnet.engine,
            "hosts": fabric.ids(NodeKind::ChannelAdapter).count(),
            "switches": fabric.ids(NodeKind::Switch).count(),
            "lids": subnet.lids.iter().count(),
            "lanes": subnet.sl_to_vl.lanes(),
            "notes": subnet.notes,
            "remarks": subnet.remarks,
            "disjointness": paths.as_ref().map(disjoint::fields),
            "credit_loop": has_loop,
            "tried": best.as_ref().map(Best::fields),
            "compared": compared.as_ref().map(Compared::fields),
            "needs_plug_in": needs_plug_in(&subnet),
            "written": !arguments.writing.dry_run,
            "folder": arguments.output.display().to_string(),
            "files": names,
        });
        return Ok(Answer::json("clearlane-route/1", fields));
    }
    let text = text(fabric, &subnet, arguments, &names, paths.as_ref());
    let compared = compared.map_or(String::new(), |compared| format!("\n{}", compared.text()));
    let tried = best.map_or(String::new(), |best| format!("{}\n", best.text()));
    Ok(Answer::text(tried + &text + &compared))
}

/// Whether nothing in a stock OpenSM can answer path queries so: the engine file has no SLs, and a
/// QoS policy knows source and destination but not the LID offset.
fn needs_plug_in(subnet: &Subnet) -> bool {
    subnet.path_sl.offsets() > 1
}

/// OpenSM loads whatever a file says, holes included, so tables that lose packets are not written.
fn check_paths(fabric: &Fabric, subnet: &Subnet) -> Result<(), Failure> {
    let found = reachability(fabric, subnet);
    let lost = found.pairs - found.reached;
    if lost == 0 {
        return Ok(());
    }
    let example = found.examples.first().map_or("", |fault| fault.text.as_str());
    Err(Failure::Input(format!(
        "nothing written: {lost} of {} paths do not arrive by these tables, such as {example}; \
         `clearlane check` tells more, whole tables or an engine mend it",
        found.pairs
    )))
}

/// Tables that can deadlock are written only if that is asked for. Whether they can.
fn check_loops(fabric: &Fabric, subnet: &Subnet, is_forced: bool) -> Result<bool, Failure> {
    let found = credit_loop(fabric, subnet);
    let Some(cycle) = found.cycle.as_ref().filter(|_| !is_forced) else {
        return Ok(!found.is_sane());
    };
    let length = cycle.channels.len();
    Err(Failure::Input(format!(
        "nothing written: by these tables a credit loop of {length} channels can deadlock; route \
         with up-down, or layered and more --lanes, which have none on any fabric, or add --force"
    )))
}

fn may_write(arguments: &Arguments) -> Result<(), Failure> {
    let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
    let tables = arguments.routing.files_read();
    let inputs: Vec<&Path> = tables.chain([Path::new(&arguments.fabric)]).collect();
    arguments.writing.folder(&arguments.output, &names, &inputs)
}

fn text(
    fabric: &Fabric,
    subnet: &Subnet,
    arguments: &Arguments,
    names: &[&str],
    paths: Option<&Disjointness>,
) -> String {
    let mut text = format!("{}\n", headline(fabric, subnet));
    for remark in subnet.notes.iter().chain(&subnet.remarks) {
        text.push_str(&format!("  {remark}\n"));
    }
    text.push_str(&paths.map_or(String::new(), disjoint::text));
    if needs_plug_in(subnet) {
        text.push_str(&format!("  {PLUG_IN_NEEDED}\n"));
    }
    if !credit_loop(fabric, subnet).is_sane() {
        text.push_str("  a credit loop is possible by these tables; `clearlane check` shows it\n");
    }
    let would = if arguments.writing.dry_run { "would write " } else { "" };
    let mut table = Table::plain(&[Align::Left, Align::Left]);
    for (name, what) in FILES.iter().filter(|(name, _)| names.contains(name)) {
        table.row([format!("{would}{}", arguments.output.join(name).display()), what.to_string()]);
    }
    format!("{text}{table}")
}

/// `648 hosts and 54 switches routed by fat-tree: 702 LIDs on 1 lane`.
fn headline(fabric: &Fabric, subnet: &Subnet) -> String {
    format!(
        "{} and {} routed by {}: {} on {}",
        count(fabric.ids(NodeKind::ChannelAdapter).count(), "host", "hosts"),
        count(fabric.ids(NodeKind::Switch).count(), "switch", "switches"),
        subnet.engine,
        count(subnet.lids.iter().count(), "LID", "LIDs"),
        count(usize::from(subnet.sl_to_vl.lanes()), "lane", "lanes"),
    )
}

fn contents<'a>(fabric: &'a Fabric, subnet: &'a Subnet) -> Vec<(&'static str, Content<'a>)> {
    let hosts = fabric.ids(NodeKind::ChannelAdapter).count() as u64;
    let lines = hosts * subnet.lids.iter().count() as u64;
    let in_groups = matches!(subnet.path_sl, PathSl::Uniform(_) | PathSl::ByGroup(_));
    let with_levels = !in_groups || lines <= LEVELS_LINES_MAX;
    let mut contents: Vec<(&str, Content<'_>)> = vec![
        ("lfts.txt", Box::new(|out| lfts::write(fabric, subnet, out))),
        (
            "guid2lid",
            Box::new(|out| out.write_all(guid2lid::write(fabric, &subnet.lids).as_bytes())),
        ),
        ("sl2vl.dump", Box::new(|out| sl2vl::write(fabric, subnet, out))),
    ];
    if with_levels {
        contents.push(("psl.txt", Box::new(|out| path_sl::write(fabric, subnet, out))));
    }
    contents.push(("path-groups.txt", Box::new(|out| path_groups::write(fabric, subnet, out))));
    contents.push(("opensm.fdbs", Box::new(|out| fdbs::write(fabric, subnet, out))));
    contents
        .push(("opensm-subnet.lst", Box::new(|out| subnet_lst::write(fabric, &subnet.lids, out))));
    let readme = readme(fabric, subnet, with_levels);
    contents.push(("README", Box::new(move |out| out.write_all(readme.as_bytes()))));
    contents
}

/// What to do with the files: judge, try, go back.
fn readme(fabric: &Fabric, subnet: &Subnet, with_levels: bool) -> String {
    let mut table = Table::plain(&[Align::Left, Align::Left]);
    for (name, what) in FILES.iter().filter(|(name, _)| *name != "psl.txt" || with_levels) {
        table.row([*name, *what]);
    }
    let coded = !matches!(subnet.path_sl, PathSl::Uniform(_));
    let lmc = subnet.lids.lmc_max().value();
    let by_lane = subnet.sl_to_vl.lanes() > 1 && (with_levels || !coded);
    let lanes = if by_lane { " -d sl2vl.dump" } else { "" };
    let levels = if coded && with_levels { " -c psl.txt" } else { "" };
    let judge = format!("ibdmchk -s opensm-subnet.lst -f opensm.fdbs -m /dev/null{lanes}{levels}");
    let head = headline(fabric, subnet);
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("{head}.\nWritten by clearlane {version}.\n\n{table}");
    let mut say = |paragraph: &str, command: &str| {
        text.push_str(&format!("\n{}\n", wrap(paragraph, README_COLUMNS).join("\n")));
        if !command.is_empty() {
            text.push_str(&format!("\n  {command}\n"));
        }
    };
    match (with_levels, coded) {
        (true, _) => {}
        (false, false) => say(LEVELS_LEFT_OUT, ""),
        (false, true) => say(LEVELS_IN_GROUPS, ""),
    }
    if needs_plug_in(subnet) {
        say(&format!("{PLUG_IN_NEEDED_BY} {PLUG_IN_NEEDED}: docs/opensm-plugin.md has one."), "");
    } else if coded && with_levels {
        say(LEVELS_NEEDED, "");
    }
    if lmc > 0 {
        say(&format!("{ONE_BY_ONE} 0 to {}, each into a folder of its own.", (1 << lmc) - 1), "");
    }
    say("To judge the tables with ibutils, which knows nothing of clearlane:", &judge);
    say(TO_TRY, &format!("opensm -R file -U lfts.txt -l {lmc}"));
    say(TO_GO_BACK, "");
    text
}

const README_COLUMNS: usize = 90;
const LEVELS_LEFT_OUT: &str = "psl.txt is left out: it would be large, and the service level is \
    the same everywhere.";
const LEVELS_IN_GROUPS: &str = "psl.txt is left out: it would have millions of lines, and \
    path-groups.txt says the same. OpenSM's engine file sets no service level: `clearlane deploy` \
    writes a QoS policy that does, or clearlane's own routing engine (docs/opensm-plugin.md) reads \
    this folder. ibdmchk judges the tables on one lane here.";
const LEVELS_NEEDED: &str = "The tables are free of deadlock only with the service levels of \
    psl.txt and the lanes of sl2vl.dump. OpenSM's engine file sets neither: it takes a QoS policy \
    that does, or clearlane's own routing engine (docs/opensm-plugin.md), which reads this folder.";
const PLUG_IN_NEEDED: &str = "the SL depends on the LID offset: OpenSM's engine file and QoS \
    policy cannot say so, it needs a routing-engine plug-in";
const PLUG_IN_NEEDED_BY: &str = "The tables are free of deadlock only with the service levels of \
    psl.txt and the lanes of sl2vl.dump, and";
const ONE_BY_ONE: &str = "ibdmchk takes tables of one LID per port alone: write them by the same \
    command with --lid-offset";
const TO_TRY: &str = "To try them: keep a copy of OpenSM's guid2lid (usually in \
    /var/cache/opensm), stop OpenSM, put the guid2lid of this folder in its place so that every \
    port keeps the LID the tables are for, and start";
const TO_GO_BACK: &str = "To go back: stop OpenSM, put the copy back and start it as before. Both \
    ways, every LID that changes breaks the connections that use it.";
