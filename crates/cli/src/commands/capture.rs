//! `clearlane capture`: captures of InfiniBand and RoCE, and who in them is congested.

use super::experiment::quoted;
use crate::answer::{self, Answer, Verdict};
use crate::arguments::between;
use crate::failure::Failure;
use crate::files;
use crate::interrupt::Interrupts;
use crate::progress::Progress;
use crate::table::count;
use crate::terminal;
use crate::writing;
use clap::Args;
use clearlane_capture::{Analysed, Options, SLICES_MAX, Source, analyse};
use clearlane_ib::{Picoseconds, visible, wrap};
use clearlane_lab::{FLOW_SERIES_FILE, RunFolder, grouped, observed_page, write_flow_series};
use clearlane_observe::{Names, TableOptions, page, remarks, series, summary, table, verdict};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// What to analyse.
#[derive(Args, Debug)]
#[command(
    after_help = "Reads pcap, pcapng and ERF files of tcpdump, ibdump, dumpcap or Wireshark: \
    InfiniBand, RoCE v1 and RoCE v2. Files of several hosts are brought to the clock of the \
    first.\n\n\
    Examples:\n  clearlane capture h1.pcap h3.pcap h4.pcap --names /etc/hosts\n  \
    clearlane capture h4.pcap --from 1s --to 1.00033s --slice 10us\n  \
    tcpdump -i eth0 -w - udp port 4791 | clearlane capture -\n  \
    clearlane capture --post-dissector > clearlane.lua"
)]
pub struct Arguments {
    /// Capture files, or - for one on stdin
    #[arg(value_name = "FILE", required_unless_present = "post_dissector")]
    files: Vec<PathBuf>,
    /// Check the CRCs of every packet that was captured whole
    #[arg(long)]
    crc: bool,
    /// Look at packets from this time after the first one on, such as 1.5s
    #[arg(long, value_name = "TIME", default_value = "0s")]
    from: Picoseconds,
    /// Look at packets up to this time after the first one
    #[arg(long, value_name = "TIME")]
    to: Option<Picoseconds>,
    /// Length of slices of time, at least 1 ns; without --to, 256 of them are looked at [default:
    /// as long as it takes for 128 to 256 of them]
    #[arg(long, value_name = "TIME")]
    slice: Option<Picoseconds>,
    /// Names of addresses: a file as /etc/hosts, in which a LID, as 7 or 0x7, may be an address
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Rows of the table
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = between(1u32, 100_000))]
    top: u32,
    /// Show flows of the subnet's management, queue pairs 0 and 1, as well
    #[arg(long)]
    management: bool,
    /// Folder for the report, the flows over time as Parquet and everything as JSON
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace the analysis that is in the folder
    #[arg(long, requires = "out")]
    force: bool,
    /// Print a post-dissector for Wireshark and tshark, with fields for FECN, BECN and CNP
    #[arg(long, exclusive = true)]
    post_dissector: bool,
}

/// The post-dissector, in Lua.
const POST_DISSECTOR: &str = include_str!("../../wireshark/clearlane.lua");
/// Everything the folder holds.
const FILES: &[&str] = &["capture.json", FLOW_SERIES_FILE, "report.html"];
const NAMES_BYTES_MAX: u64 = 64 << 20;
/// How wide sentences are, and the labels before them.
const COLUMNS: usize = 100;
const LABEL: usize = 12;
const STDIN: &str = "-";

/// Analyses.
pub fn run(arguments: &Arguments, json: bool, interrupts: &Interrupts) -> Result<Answer, Failure> {
    if arguments.post_dissector {
        return Ok(Answer::file(POST_DISSECTOR.into()));
    }
    let names = match &arguments.names {
        Some(path) => {
            let text = files::read(path, NAMES_BYTES_MAX)?;
            Names::read(&text, &path.to_string_lossy()).map_err(Failure::Input)?
        }
        None => Names::default(),
    };
    let sources = sources(&arguments.files)?;
    let inputs: Vec<&Path> = arguments.files.iter().map(PathBuf::as_path).collect();
    let folder = match &arguments.out {
        Some(out) => {
            let (force, unfinished) = (arguments.force, interrupts.unfinished());
            let folder = RunFolder::claim_for(out, force, FILES, unfinished);
            let folder = folder.map_err(Failure::lab)?;
            writing::spare(out, &inputs)?;
            Some(folder)
        }
        None => None,
    };
    // Who captures until told to stop wants to see what there was.
    let halt = interrupts.stop_silently();
    let analysed = watched(arguments, &sources, || halt.load(Ordering::SeqCst))?;
    let report = folder.map(|folder| fill(folder, arguments, &analysed, &names)).transpose()?;
    let told = report.map(|path| format!("report: {}", path.display()));
    let verdict = if analysed.partial { Verdict::Interrupted } else { Verdict::Done };
    if json {
        told.iter().for_each(|line| terminal::remark(line));
        let document = Answer::json("clearlane-capture/1", summary(&analysed, &names));
        return Ok(document.with(verdict));
    }
    let told = told.map_or(String::new(), |line| line + "\n");
    Ok(Answer::text(text(arguments, &analysed, &names) + &told).with(verdict))
}

/// The files, none of which is read yet.
fn sources(paths: &[PathBuf]) -> Result<Vec<Source<'_>>, Failure> {
    paths.iter().map(|path| source(path, paths)).collect()
}

fn source<'a>(path: &'a Path, all: &[PathBuf]) -> Result<Source<'a>, Failure> {
    let twice = |what: String| {
        let why = "several captures are read twice, to bring them to one clock";
        Failure::Input(format!("{what}: {why}; give files"))
    };
    if path.as_os_str() == STDIN {
        if all.len() > 1 {
            return Err(twice("- cannot be one of several".into()));
        }
        let open = || Ok(Box::new(io::stdin()) as Box<dyn Read>);
        return Ok(Source { name: "stdin".into(), open: Box::new(open), bytes: None });
    }
    let known = path.metadata().map_err(|e| Failure::reading(path, &e))?;
    if known.is_dir() {
        return Err(Failure::reading(path, &io::Error::from(io::ErrorKind::IsADirectory)));
    }
    // A named pipe cannot be read twice either.
    if all.len() > 1 && !known.is_file() {
        return Err(twice(format!("{} is no file", path.display())));
    }
    let open = move || File::open(path).map(|file| Box::new(file) as Box<dyn Read>);
    Ok(Source {
        name: shown(path, all),
        open: Box::new(open),
        bytes: known.is_file().then_some(known.len()),
    })
}

/// What a file is called: its name, with its folder where two have the same.
fn shown(path: &Path, all: &[PathBuf]) -> String {
    let same = all.iter().filter(|other| other.file_name() == path.file_name()).count();
    let name = path.file_name().filter(|_| same == 1).unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn options(arguments: &Arguments) -> Result<Options, Failure> {
    let ns = |time: Picoseconds| time.0 / 1000;
    let (from_ns, slice_ns) = (ns(arguments.from), arguments.slice.map(ns));
    let to_ns = arguments.to.map(ns);
    let fault = |problem: String| Err(Failure::Input(problem));
    if slice_ns == Some(0) {
        return fault("--slice is less than 1 ns; give a longer one".into());
    }
    if let Some(to) = arguments.to.filter(|to| *to <= arguments.from) {
        let from = arguments.from;
        return fault(format!("--to {to} is not after --from {from}; give a later one"));
    }
    let span_ns = slice_ns.map(|slice_ns| slice_ns.saturating_mul(SLICES_MAX as u64));
    let last_ns = span_ns.map(|span_ns| from_ns.saturating_add(span_ns - 1));
    if to_ns.zip(last_ns).is_some_and(|(to, last)| to > last.saturating_add(1)) {
        return fault(format!(
            "--from to --to is more than {SLICES_MAX} slices; give a longer --slice, or an earlier \
             --to"
        ));
    }
    let to_ns = to_ns.or(last_ns);
    Ok(Options { crcs: arguments.crc, from_ns, to_ns, slice_ns })
}

fn watched(
    arguments: &Arguments,
    sources: &[Source<'_>],
    is_stopped: impl Fn() -> bool,
) -> Result<Analysed, Failure> {
    let options = options(arguments)?;
    let progress = Progress::start("reading captures");
    let mut tell = |share: Option<f64>, bytes: u64| {
        match share {
            Some(share) => progress.done(share),
            None => progress.label(&format!("reading captures: {} MB", grouped(bytes >> 20))),
        }
        !is_stopped()
    };
    match analyse(sources, &options, &mut tell).map_err(Failure::input)? {
        Some(analysed) => Ok(analysed),
        None => Err(Failure::Interrupted("interrupted; nothing is known yet".into())),
    }
}

/// Puts everything into the folder. Returns the path of the report.
fn fill(
    folder: RunFolder,
    arguments: &Arguments,
    analysed: &Analysed,
    names: &Names,
) -> Result<PathBuf, Failure> {
    let document = answer::document("clearlane-capture/1", &summary(analysed, names));
    let rows = write_flow_series(&series(analysed, names));
    let rows = rows.map_err(|e| Failure::Internal(e.to_string()))?;
    let page = observed_page(&page(analysed, names, &command(arguments)));
    let contents =
        vec![(FILES[0], document.into_bytes()), (FILES[1], rows), (FILES[2], page.into_bytes())];
    folder.fill_with(contents).map_err(Failure::lab)
}

/// The command line that makes the same again.
fn command(arguments: &Arguments) -> String {
    let mut words = vec!["clearlane capture".to_owned()];
    words.extend(arguments.files.iter().map(|path| quoted(&path.to_string_lossy())));
    if arguments.crc {
        words.push("--crc".into());
    }
    if arguments.from.0 > 0 {
        words.push(format!("--from {}", spaceless(arguments.from)));
    }
    words.extend(arguments.to.map(|to| format!("--to {}", spaceless(to))));
    words.extend(arguments.slice.map(|slice| format!("--slice {}", spaceless(slice))));
    words.extend(
        arguments.names.iter().map(|path| format!("--names {}", quoted(&path.to_string_lossy()))),
    );
    words.extend(
        arguments.out.iter().map(|path| format!("--out {}", quoted(&path.to_string_lossy()))),
    );
    words.join(" ")
}

fn spaceless(time: Picoseconds) -> String {
    time.exact().replace(' ', "")
}

fn text(arguments: &Arguments, analysed: &Analysed, names: &Names) -> String {
    let mut text = String::new();
    for line in verdict(analysed, names).lines {
        text.push_str(&labelled(line.label, &line.text));
    }
    let options =
        TableOptions { rows_max: arguments.top as usize, management: arguments.management };
    let (table, left_out) = table(analysed, names, options);
    if !table.is_empty() {
        text.push_str(&format!("\n{table}"));
    }
    if left_out > 0 {
        let more = count(left_out, "flow", "flows");
        text.push_str(&format!("and {more} more; --top {} shows all\n", {
            left_out + table.rows.len()
        }));
    }
    for remark in remarks(analysed) {
        text.push_str(&labelled("note", &remark));
    }
    text
}

/// A label, and a sentence beside it on as many lines as it takes.
fn labelled(label: &str, sentence: &str) -> String {
    let lines = wrap(&visible(sentence), COLUMNS - LABEL);
    let line = |(number, line): (usize, String)| {
        let label = if number == 0 { label } else { "" };
        format!("{label:<LABEL$}{line}\n")
    };
    lines.into_iter().enumerate().map(line).collect()
}
