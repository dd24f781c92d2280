//! A result as one picture: the fabric of some variants side by side at one instant, congestion
//! trees lit from their roots, the hosts that suffer marked, figures in words. A self-contained
//! SVG, for a README or a slide; the page shows the same and moves.

use super::congestion::depths;
use super::frames::Frames;
use super::layout::{Layout, layout};
use super::over_time::{Channels, flows_of, frames_most};
use super::suffering::SUFFERS_FROM;
use crate::LabError;
use crate::measure::{self, Asked, Scope, kinds};
use crate::result::{RunResult, VariantResult};
use crate::table::significant;
use clearlane_fabric::{Endpoint, Fabric, NodeKind};
use clearlane_ib::{Picoseconds, PortNumber, visible};
use clearlane_sim::{Deadlock, Ending};
use clearlane_workload::Class;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The page that the picture is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Theme {
    /// A light page.
    Light,
    /// A dark page.
    Dark,
}

/// Colours of a theme: text, quiet text, lines, tree, what suffers or stands still, switches, and
/// the page it is made for, around words on lines.
struct Colours {
    ink: &'static str,
    quiet: &'static str,
    line: &'static str,
    tree: &'static str,
    slow: &'static str,
    switch: &'static str,
    page: &'static str,
}

/// One variant in the picture.
struct Panel<'a> {
    variant: &'a VariantResult,
    frames: Frames,
    channels: Channels,
    slow: BTreeSet<u32>,
    hot: BTreeSet<u32>,
    deadlock: Option<&'a Deadlock>,
}

/// Where a panel is, in units of the picture.
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

const WIDTH: f64 = 1200.0;
const GAP: f64 = 48.0;
/// First baseline of the words below a panel's name, and how far apart their lines are.
const WORDS: (f64, f64) = (43.0, 21.0);
/// From the last of them to the map.
const BELOW_WORDS: f64 = 20.0;
/// Lines that what is different in a variant may take.
const SUMMARY_LINES: usize = 2;
const MAP: f64 = 290.0;
const FOOT: f64 = 40.0;
/// Hosts of a switch that stand in one row.
const HOSTS_IN_ROW: usize = 6;
/// Between hosts of a row, and how wide a row of them is.
const HOST_PITCH: f64 = 3.6;
const HOSTS_WIDE: f64 = HOST_PITCH * HOSTS_IN_ROW as f64;
/// Light by depth: width and opacity of the outer light, width and opacity of the line.
const LIGHT: [(f64, f64, f64, f64); 4] =
    [(13.0, 0.7, 4.6, 1.0), (9.0, 0.4, 2.8, 0.9), (7.0, 0.24, 1.8, 0.7), (6.0, 0.18, 1.4, 0.6)];
/// Width of a letter over its size, on average.
const LETTER: f64 = 0.53;

impl Theme {
    fn colours(self) -> Colours {
        match self {
            Theme::Light => Colours {
                ink: "#16191d",
                quiet: "#59616b",
                line: "#c3c8ce",
                tree: "#e06c00",
                slow: "#b00040",
                switch: "#f3f4f6",
                page: "#ffffff",
            },
            Theme::Dark => Colours {
                ink: "#e4e7ea",
                quiet: "#9aa3ad",
                line: "#485058",
                tree: "#ff9838",
                slow: "#ff7ab0",
                switch: "#1d2126",
                page: "#0d1117",
            },
        }
    }
}

/// The named variants of a result side by side, one to three of them. Fails if there is no such
/// variant or it was not run.
pub fn picture(result: &RunResult, variants: &[&str], theme: Theme) -> Result<String, LabError> {
    let refused = |problem: String| LabError::Request(problem);
    if variants.is_empty() || variants.len() > 3 {
        return Err(refused("a picture shows one to three variants; name as many".into()));
    }
    let mut panels = Vec::new();
    for name in variants {
        let found = result.variants.iter().find(|variant| variant.name == *name);
        let known = result.variants.iter().map(|v| v.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = found
            .ok_or_else(|| refused(format!("picture: no variant {name}; there are {known}")))?;
        let panel = Panel::of(found, result.variants.len());
        panels.push(panel.ok_or_else(|| refused(format!("picture: {name} was not run")))?);
    }
    let count = panels.len() as f64;
    let width = (WIDTH - (count - 1.0) * GAP) / count;
    let at = instant(&panels);
    let colours = theme.colours();
    let mut said: Vec<Said> = panels.iter().map(|panel| panel.said(result, width)).collect();
    // Figures stand side by side, however much the summaries above them say.
    let summary = said.iter().map(|said| said.summary.len()).max().unwrap_or(0);
    said.iter_mut().for_each(|said| said.summary.resize(summary, String::new()));
    let figures = said.iter().map(|said| said.figures.len()).max().unwrap_or(0);
    let lines = (summary + figures).max(1) - 1;
    let head = WORDS.0 + WORDS.1 * lines as f64 + BELOW_WORDS;
    let legend = legend(&panels, at, &colours);
    let mut svg = String::new();
    let height = head + MAP + FOOT * legend.len() as f64;
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif\" \
         role=\"img\">\n<title>{}</title>\n",
        escaped(&super::finding::finding(result))
    );
    for (index, (panel, said)) in panels.iter().zip(&said).enumerate() {
        let area = Area { left: index as f64 * (width + GAP), top: head, width, height: MAP };
        said.draw(&panel.variant.name, &area, &colours, &mut svg);
        panel.draw(at, &area, &colours, &mut svg);
    }
    for (row, entries) in legend.iter().enumerate() {
        foot(head + MAP + FOOT * row as f64 + 28.0, entries, &colours, &mut svg);
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn escaped(text: &str) -> String {
    visible(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn words(
    svg: &mut String,
    (x, y): (f64, f64),
    (size, colour): (f64, &str),
    bold: bool,
    text: &str,
) {
    let weight = if bold { " font-weight=\"600\"" } else { "" };
    let text = escaped(text);
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" \
         fill=\"{colour}\"{weight}>{text}</text>"
    );
}

/// A sign of the legend, how wide it is, and what it means.
type Entry = (String, f64, String);

/// What the marks mean, in rows that fit: of signs that no panel has, nothing is said.
fn legend(panels: &[Panel<'_>], at: Picoseconds, colours: &Colours) -> Vec<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let us = at.as_microseconds();
    let when = match us >= 1000.0 {
        true => format!("{:.2} ms", us / 1000.0),
        false => format!("{us:.0} µs"),
    };
    if panels.iter().any(|panel| panel.deadlock.is_none()) {
        let sign = format!(
            "<path d=\"M5 -5h24\" stroke=\"{c}\" stroke-width=\"11\" opacity=\".4\"/>\
             <path d=\"M5 -5h24\" stroke=\"{c}\" stroke-width=\"3\"/>",
            c = colours.tree
        );
        let text =
            format!("held back for lack of credits, {when} into the run; brightest at the root");
        entries.push((sign, 36.0, text));
    }
    if panels.iter().any(|panel| panel.deadlock.is_some()) {
        let sign = format!(
            "<path d=\"M5 -5h24\" stroke=\"{}\" stroke-width=\"4\" stroke-dasharray=\"7 3\"/>",
            colours.slow
        );
        entries.push((sign, 36.0, "deadlock: each waits for the next, in a circle".into()));
    }
    if panels.iter().any(|panel| !panel.slow.is_empty()) {
        let sign = format!("<path d=\"M0 -11h4v13h-4z\" fill=\"{}\"/>", colours.slow);
        entries.push((sign, 10.0, format!("innocent host, {SUFFERS_FROM} times slower or worse")));
    }
    if panels.iter().any(|panel| !panel.hot.is_empty()) {
        let sign = format!("<path d=\"M6 -10l5 9h-10z\" fill=\"{}\"/>", colours.ink);
        entries.push((sign, 17.0, "hot receiver".into()));
    }
    let mut rows: Vec<Vec<Entry>> = vec![Vec::new()];
    for entry in entries {
        let row = rows.last().map_or(0.0, |row| row.iter().map(room).sum::<f64>());
        match rows.last_mut() {
            Some(last) if row + room(&entry) <= WIDTH || last.is_empty() => last.push(entry),
            _ => rows.push(vec![entry]),
        }
    }
    rows
}

/// How far the next entry of a legend is.
fn room((_, width, text): &Entry) -> f64 {
    width + text.chars().count() as f64 * 14.0 * LETTER + 26.0
}

/// A row of the legend.
fn foot(y: f64, entries: &[Entry], colours: &Colours, svg: &mut String) {
    let mut x = 0.0;
    for entry in entries {
        let (sign, width, text) = entry;
        let _ = writeln!(svg, "<g transform=\"translate({x:.1} {y:.1})\">{sign}</g>");
        words(svg, (x + width, y), (14.0, colours.quiet), false, text);
        x += room(entry);
    }
}

/// A text in lines of at most so many letters, broken between words, or after commas where its
/// parts fit a line; what more lines would hold is left out and marked.
fn wrapped(text: &str, letters: usize, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let parts: Vec<&str> = text.split_inclusive(", ").map(str::trim).collect();
    let whole = parts.len() <= lines_max && parts.iter().all(|p| p.chars().count() <= letters);
    for word in if whole { parts } else { text.split_whitespace().collect() } {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(shortened(word, letters)),
        }
    }
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            *last = shortened(&format!("{last} …"), letters);
        }
    }
    lines
}

/// A text of at most so many letters, an ellipsis in the place of the rest.
fn shortened(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    let kept: String = text.chars().take(letters.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end_matches([' ', '…']))
}

/// The instant that is drawn: the fullest of the first panel that did not deadlock.
fn instant(panels: &[Panel<'_>]) -> Picoseconds {
    let shown = panels.iter().find(|panel| panel.deadlock.is_none()).unwrap_or(&panels[0]);
    Picoseconds(shown.frames.length().0 * shown.fullest() as u64)
}

/// The words above a panel, in lines.
struct Said {
    summary: Vec<String>,
    figures: Vec<String>,
    deadlocks: bool,
}

impl Said {
    fn draw(&self, name: &str, area: &Area, colours: &Colours, svg: &mut String) {
        let name = shortened(name, (area.width / (19.0 * LETTER)) as usize);
        words(svg, (area.left, 20.0), (19.0, colours.ink), true, &name);
        let mut y = WORDS.0;
        for line in &self.summary {
            if !line.is_empty() {
                words(svg, (area.left, y), (15.0, colours.quiet), false, line);
            }
            y += WORDS.1;
        }
        let colour = if self.deadlocks { colours.slow } else { colours.ink };
        for line in &self.figures {
            let place = (area.left, y + 3.0);
            words(svg, place, (16.0, colour), self.deadlocks, line);
            y += WORDS.1;
        }
    }
}

impl<'a> Panel<'a> {
    fn of(variant: &'a VariantResult, variants: usize) -> Option<Self> {
        let run = variant.runs.first()?;
        let history = run.history.as_ref()?;
        let frames = Frames::of(run, frames_most(run.figures.channels.len(), variants));
        let flows = flows_of(variant, run);
        let channels = Channels::of(&frames, history, &flows);
        // Delivered beside and without the hot flows, by sender.
        let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let groups = &variant.prepared.groups;
        let innocent = |group: usize| groups.get(group).is_some_and(|g| g.class != Class::Hot);
        for flow in run.figures.flows.iter().filter(|flow| innocent(flow.group)) {
            sums.entry(flow.source.0).or_default().0 += flow.payload_bytes;
        }
        for flow in history.alone.iter().filter(|flow| innocent(flow.group)) {
            sums.entry(flow.source.0).or_default().1 += flow.payload_bytes;
        }
        let ends = variant.prepared.hosts.ends();
        let slow = |(_, (now, alone)): &(_, &(u64, u64))| {
            *alone > 0 && *alone as f64 >= SUFFERS_FROM * *now as f64
        };
        let slow = sums.iter().filter(slow);
        let slow = slow.filter_map(|(rank, _)| Some(ends.get(*rank as usize)?.node.0)).collect();
        let hot = super::data::hot_receivers(variant).into_iter().collect();
        let deadlock = match &run.ending {
            Ending::Deadlock(deadlock) => Some(deadlock),
            _ => None,
        };
        Some(Panel { variant, frames, channels, slow, hot, deadlock })
    }

    /// The measured frame with the most channels in trees; the first of equals.
    fn fullest(&self) -> usize {
        let lit = |frame: usize| self.channels.roots[frame].iter().flatten().count();
        let frames = self.frames.measured();
        let first = frames.start.min(self.frames.count().saturating_sub(1));
        frames.fold(first, |best, frame| if lit(frame) > lit(best) { frame } else { best })
    }

    /// What is said of it in a width.
    fn said(&self, result: &RunResult, width: f64) -> Said {
        let spec = result.experiment.variants.iter().find(|spec| spec.name == self.variant.name);
        let summary = spec.map_or("", |spec| spec.summary.as_str());
        let letters = |size: f64| (width / (size * LETTER)) as usize;
        Said {
            summary: wrapped(summary, letters(15.0), SUMMARY_LINES),
            figures: wrapped(&self.figures(result), letters(16.0), usize::MAX),
            deadlocks: self.deadlock.is_some(),
        }
    }

    /// The frame of an instant; the last one of a run that was over by then.
    fn frame(&self, at: Picoseconds) -> usize {
        let frame = at.0 / self.frames.length().0.max(1);
        (frame as usize).min(self.frames.count().saturating_sub(1))
    }

    fn draw(&self, at: Picoseconds, area: &Area, colours: &Colours, svg: &mut String) {
        let fabric = &self.variant.prepared.fabric;
        let places = Places::of(fabric, area);
        self.links(self.frame(at), &places, colours, svg);
        let stuck = self.circle(&places, colours, svg);
        self.hosts(&places, colours, svg);
        let _ = writeln!(svg, "<g fill=\"{}\" stroke=\"{}\">", colours.switch, colours.quiet);
        for id in fabric.ids(NodeKind::Switch) {
            let (x, y) = places.switches[id.index()];
            let half = places.half;
            let mark = match stuck.contains(&id.0) {
                true => format!(" stroke=\"{}\" stroke-width=\"2.5\"", colours.slow),
                false => String::new(),
            };
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\" rx=\"2\"{mark}/>",
                x - half,
                y - 6.0,
                2.0 * half
            );
        }
        svg.push_str("</g>\n");
        self.hot_marks(&places, colours, svg);
    }

    /// The cables on which a deadlock waits, and the switches that wait.
    fn circle(&self, places: &Places, colours: &Colours, svg: &mut String) -> BTreeSet<u32> {
        let mut stuck = BTreeSet::new();
        let Some(deadlock) = self.deadlock else { return stuck };
        let fabric = &self.variant.prepared.fabric;
        let mut path = String::new();
        for buffer in &deadlock.cycle {
            let switch = fabric.ids(NodeKind::Switch);
            let switch = switch.filter(|id| fabric.node(*id).name == buffer.switch).min();
            let (Some(node), Some(port)) = (switch, PortNumber::new(buffer.port)) else { continue };
            stuck.insert(node.0);
            let Some(from) = fabric.peer(Endpoint { node, port }) else { continue };
            if let (Some(a), Some(b)) = (places.of_node(from.node.0), places.of_node(node.0)) {
                let _ = write!(path, "M{:.1} {:.1}L{:.1} {:.1}", a.0, a.1, b.0, b.1);
            }
        }
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"4\" \
             stroke-dasharray=\"7 3\"/>",
            colours.slow
        );
        stuck
    }

    /// What the variant did to the victims, or what it delivered.
    fn figures(&self, result: &RunResult) -> String {
        if let Some(deadlock) = self.deadlock {
            let (count, us) = (deadlock.cycle.len(), deadlock.found_at.as_microseconds());
            return format!("deadlock found at {us:.0} µs: {count} buffers wait in a circle");
        }
        let of = |entry: &'static measure::Entry, scope| {
            result.ask(&Asked::scoped(entry, scope), self.variant).map(|estimate| estimate.mean)
        };
        let slowdown = of(&kinds::slowdown::ENTRY, Scope::All);
        match (slowdown, of(&kinds::accepted_gbps::ENTRY, Scope::Class(Class::Victim))) {
            (Some(slowdown), Some(gbps)) => format!(
                "victims: {} times slower than alone, {} Gb/s together",
                significant(slowdown),
                significant(gbps)
            ),
            _ => match of(&kinds::delivered_load::ENTRY, Scope::All) {
                Some(load) => format!("delivered: {} of the senders' links", significant(load)),
                None => String::new(),
            },
        }
    }

    fn links(&self, frame: usize, places: &Places, colours: &Colours, svg: &mut String) {
        let fabric = &self.variant.prepared.fabric;
        let mut quiet = String::new();
        for link in fabric.links() {
            if let (Some(a), Some(b)) =
                (places.of_node(link.a.node.0), places.of_node(link.b.node.0))
            {
                let _ = write!(quiet, "M{:.1} {:.1}L{:.1} {:.1}", a.0, a.1, b.0, b.1);
            }
        }
        let _ = writeln!(
            svg,
            "<path d=\"{quiet}\" fill=\"none\" stroke=\"{}\" stroke-width=\".6\"/>",
            colours.line
        );
        let (Some(causes), Some(roots)) =
            (self.channels.causes.get(frame), self.channels.roots.get(frame))
        else {
            return;
        };
        let Some(run) = self.variant.runs.first() else { return };
        let depths = depths(causes, roots);
        let mut lit = vec![String::new(); LIGHT.len()];
        for (channel, depth) in run.figures.channels.iter().zip(depths) {
            let ends = self.variant.channel_ends(channel);
            let (Some(depth), Some((from, to))) = (depth, ends) else { continue };
            let (Some(a), Some(b)) = (places.of_node(from.node.0), places.of_node(to.node.0))
            else {
                continue;
            };
            let path = &mut lit[depth.min(LIGHT.len() - 1)];
            let _ = write!(path, "M{:.1} {:.1}L{:.1} {:.1}", a.0, a.1, b.0, b.1);
        }
        let _ =
            writeln!(svg, "<g fill=\"none\" stroke=\"{}\" stroke-linecap=\"round\">", colours.tree);
        for (path, (light, soft, line, opacity)) in lit.iter().zip(LIGHT).rev() {
            if !path.is_empty() {
                let _ = writeln!(
                    svg,
                    "<path d=\"{path}\" stroke-width=\"{light}\" opacity=\"{soft}\"/>\
                     <path d=\"{path}\" stroke-width=\"{line}\" opacity=\"{opacity}\"/>"
                );
            }
        }
        svg.push_str("</g>\n");
    }

    fn hosts(&self, places: &Places, colours: &Colours, svg: &mut String) {
        for (node, (x, y)) in &places.hosts {
            let colour = if self.slow.contains(node) { colours.slow } else { colours.line };
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"2.4\" height=\"8\" fill=\"{colour}\"/>",
                x - 1.2,
                y - 4.0
            );
        }
    }

    /// The hot receivers, above everything else, named if there is only one.
    fn hot_marks(&self, places: &Places, colours: &Colours, svg: &mut String) {
        if self.hot.is_empty() {
            return;
        }
        let fabric = &self.variant.prepared.fabric;
        let _ = writeln!(
            svg,
            "<g stroke=\"{}\" stroke-width=\"3\" paint-order=\"stroke\">",
            colours.page
        );
        for node in &self.hot {
            let Some((x, y)) = places.hosts.get(node) else { continue };
            // Below all hosts of its switch, so that its name covers none.
            let tip = places.under(*node, *y);
            let _ =
                writeln!(svg, "<path d=\"M{x:.1} {tip:.1}l5 9h-10z\" fill=\"{}\"/>", colours.ink);
            let name = fabric.nodes().get(*node as usize).map_or("", |n| n.name.as_str());
            if self.hot.len() == 1 {
                words(svg, (x + 9.0, tip + 9.0), (13.0, colours.ink), true, name);
            }
        }
        svg.push_str("</g>\n");
    }
}

/// Where nodes of a panel are.
struct Places {
    /// By node; only those of switches mean anything.
    switches: Vec<(f64, f64)>,
    hosts: BTreeMap<u32, (f64, f64)>,
    /// By host, how far down its switch is.
    rows: BTreeMap<u32, f64>,
    is_switch: Vec<bool>,
    /// Half of the width of a switch.
    half: f64,
}

impl Places {
    fn of(fabric: &Fabric, area: &Area) -> Self {
        let Layout { places, .. } = layout(fabric);
        let is_switch: Vec<bool> = fabric.nodes().iter().map(|node| node.is_switch()).collect();
        let ys = places.iter().zip(&is_switch).filter(|(_, is)| **is).map(|(place, _)| place.1);
        let (low, high) = ys.fold((f64::MAX, f64::MIN), |(l, h), y| (l.min(y), h.max(y)));
        let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
        for (place, _) in places.iter().zip(&is_switch).filter(|(_, is)| **is) {
            *sizes.entry(place.1.to_bits()).or_insert(0) += 1;
        }
        let widest = sizes.into_values().max().unwrap_or(1);
        let half = (area.width / (2.9 * widest as f64)).clamp(2.0, 16.0);
        let side = half.max(HOSTS_WIDE / 2.0) + 6.0;
        let inner = area.width - 2.0 * side;
        let down = area.height - 72.0;
        let place = |(x, y, _): &(f64, f64, Option<u32>)| {
            let y = if high > low { (y - low) / (high - low) } else { 0.5 };
            (area.left + side + x * inner, area.top + 12.0 + y * down)
        };
        let switches: Vec<(f64, f64)> = places.iter().map(place).collect();
        let (mut hosts, mut rows) = (BTreeMap::new(), BTreeMap::new());
        for id in fabric.ids(NodeKind::Switch) {
            let (x, y) = switches[id.index()];
            let below = fabric.neighbours(id).map(|(_, _, peer)| peer.node);
            let below: Vec<u32> =
                below.filter(|peer| !is_switch[peer.index()]).map(|peer| peer.0).collect();
            let columns = below.len().min(HOSTS_IN_ROW);
            for (index, host) in below.into_iter().enumerate() {
                let (column, row) = (index % HOSTS_IN_ROW, index / HOSTS_IN_ROW);
                let aside = (column as f64 - (columns as f64 - 1.0) / 2.0) * HOST_PITCH;
                hosts.insert(host, (x + aside, y + 14.0 + row as f64 * 11.0));
                rows.insert(host, y);
            }
        }
        Places { switches, hosts, rows, is_switch, half }
    }

    /// Below the hosts that stand near one, at its switch or at those beside it.
    fn under(&self, host: u32, y: f64) -> f64 {
        let x = self.hosts.get(&host).map_or(0.0, |place| place.0);
        let row = self.rows.get(&host);
        let near = self
            .hosts
            .iter()
            .filter(|(other, place)| (place.0 - x).abs() < 40.0 && self.rows.get(other) == row);
        near.map(|(_, place)| place.1).fold(y, f64::max) + 7.0
    }

    fn of_node(&self, node: u32) -> Option<(f64, f64)> {
        match self.is_switch.get(node as usize)? {
            true => self.switches.get(node as usize).copied(),
            false => self.hosts.get(&node).copied(),
        }
    }
}
