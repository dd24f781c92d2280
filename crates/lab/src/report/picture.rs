//! A result as one picture: the fabric of some variants side by side at one instant, congestion
//! trees lit from their roots, the hosts that suffer marked, figures in words. A self-contained
//! SVG, for a README or a slide; the page shows the same and moves.

use super::congestion::depths;
use super::frames::Frames;
use super::layout::{Layout, layout};
use super::over_time::{Channels, flows_of, frames_most};
use crate::LabError;
use crate::measure::{Measure, Quantity, Scope};
use crate::result::{RunResult, VariantResult};
use crate::table::significant;
use clearlane_fabric::{Fabric, NodeKind};
use clearlane_workload::Class;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What the picture stands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Theme {
    /// A light page.
    Light,
    /// A dark page.
    Dark,
}

/// Colours of a theme: text, quiet text, lines, tree, suffering hosts, switches.
struct Colours {
    ink: &'static str,
    quiet: &'static str,
    line: &'static str,
    tree: &'static str,
    slow: &'static str,
    switch: &'static str,
}

/// One variant in the picture.
struct Panel<'a> {
    variant: &'a VariantResult,
    frames: Frames,
    channels: Channels,
    slow: BTreeSet<u32>,
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
const HEAD: f64 = 84.0;
const MAP: f64 = 290.0;
const FOOT: f64 = 40.0;
/// A host suffers if it is this many times slower than without the hot flows.
const SLOW: f64 = 1.5;
/// Hosts of a switch that stand in one row.
const HOSTS_IN_ROW: usize = 6;
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
            },
            Theme::Dark => Colours {
                ink: "#e4e7ea",
                quiet: "#9aa3ad",
                line: "#485058",
                tree: "#ff9838",
                slow: "#ff7ab0",
                switch: "#1d2126",
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
    let frame = panels[0].fullest();
    let colours = theme.colours();
    let mut svg = String::new();
    let height = HEAD + MAP + FOOT;
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif\" \
         role=\"img\">\n<title>{}</title>\n",
        escaped(&super::finding::finding(result))
    );
    let count = panels.len() as f64;
    let width = (WIDTH - (count - 1.0) * GAP) / count;
    for (index, panel) in panels.iter().enumerate() {
        let area = Area { left: index as f64 * (width + GAP), top: HEAD, width, height: MAP };
        panel.draw(result, frame, &area, &colours, &mut svg);
    }
    let at_us = panels[0].frames.length().as_microseconds() * frame as f64;
    foot(at_us, panels.iter().any(|panel| !panel.slow.is_empty()), &colours, &mut svg);
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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

/// What the marks mean.
fn foot(at_us: f64, slow: bool, colours: &Colours, svg: &mut String) {
    let y = HEAD + MAP + 28.0;
    let at = match at_us >= 1000.0 {
        true => format!("{:.2} ms", at_us / 1000.0),
        false => format!("{at_us:.0} µs"),
    };
    let mut x = 0.0;
    let mut entry = |sign: String, width: f64, text: &str, svg: &mut String| {
        let _ = writeln!(svg, "<g transform=\"translate({x:.1} {y:.1})\">{sign}</g>");
        words(svg, (x + width, y), (14.0, colours.quiet), false, text);
        x += width + text.chars().count() as f64 * 14.0 * LETTER + 26.0;
    };
    let tree = format!(
        "<path d=\"M5 -5h24\" stroke=\"{c}\" stroke-width=\"11\" opacity=\".4\"/>\
         <path d=\"M5 -5h24\" stroke=\"{c}\" stroke-width=\"3\"/>",
        c = colours.tree
    );
    let text = format!("held back for want of credits, {at} into the run; brightest at the root");
    entry(tree, 36.0, &text, svg);
    if slow {
        let sign = format!("<path d=\"M0 -11h4v13h-4z\" fill=\"{}\"/>", colours.slow);
        let text = format!("innocent host, {SLOW} times slower or worse");
        entry(sign, 10.0, &text, svg);
    }
    let sign = format!("<path d=\"M6 -10l5 9h-10z\" fill=\"{}\"/>", colours.ink);
    entry(sign, 17.0, "hot receiver", svg);
}

/// A text of at most so many letters, cut where a word ends.
fn shortened(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    let mut kept = String::new();
    for word in text.split_inclusive(' ') {
        if kept.chars().count() + word.chars().count() > letters {
            break;
        }
        kept.push_str(word);
    }
    format!("{} …", kept.trim_end())
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
        let slow = sums.iter().filter(|(_, (now, alone))| *alone as f64 > SLOW * *now as f64);
        let slow = slow.filter_map(|(rank, _)| Some(ends.get(*rank as usize)?.node.0)).collect();
        Some(Panel { variant, frames, channels, slow })
    }

    /// The measured frame with the most channels in trees; the first of equals.
    fn fullest(&self) -> usize {
        let lit = |frame: usize| self.channels.roots[frame].iter().flatten().count();
        let frames = self.frames.measured();
        let first = frames.start.min(self.frames.count().saturating_sub(1));
        frames.fold(first, |best, frame| if lit(frame) > lit(best) { frame } else { best })
    }

    fn draw(
        &self,
        result: &RunResult,
        frame: usize,
        area: &Area,
        colours: &Colours,
        svg: &mut String,
    ) {
        let spec = result.experiment.variants.iter().find(|spec| spec.name == self.variant.name);
        let summary = spec.map_or("", |spec| spec.summary.as_str());
        let summary = shortened(summary, (area.width / (15.0 * LETTER)) as usize);
        words(svg, (area.left, 20.0), (19.0, colours.ink), true, &self.variant.name);
        words(svg, (area.left, 43.0), (15.0, colours.quiet), false, &summary);
        words(svg, (area.left, 67.0), (16.0, colours.ink), false, &self.figures(result));
        let fabric = &self.variant.prepared.fabric;
        let places = Places::of(fabric, area);
        self.links(frame.min(self.frames.count().saturating_sub(1)), &places, colours, svg);
        self.hosts(&places, colours, svg);
        let _ = writeln!(svg, "<g fill=\"{}\" stroke=\"{}\">", colours.switch, colours.quiet);
        for id in fabric.ids(NodeKind::Switch) {
            let (x, y) = places.switches[id.index()];
            let half = places.half;
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\" rx=\"2\"/>",
                x - half,
                y - 6.0,
                2.0 * half
            );
        }
        svg.push_str("</g>\n");
    }

    /// What the variant did to the victims, or what it delivered.
    fn figures(&self, result: &RunResult) -> String {
        let of = |quantity, scope| {
            Measure::Value { quantity, scope }.evaluate(result, self.variant).map(|e| e.mean)
        };
        let slowdown = of(Quantity::Slowdown, Scope::All);
        match (slowdown, of(Quantity::AcceptedGbps, Scope::Class(Class::Victim))) {
            (Some(slowdown), Some(gbps)) => format!(
                "victims: {} times slower than alone, {} Gb/s together",
                significant(slowdown),
                significant(gbps)
            ),
            _ => match of(Quantity::DeliveredLoad, Scope::All) {
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
        let fabric = &self.variant.prepared.fabric;
        let hot: BTreeSet<u32> = super::data::hot_receivers(self.variant).into_iter().collect();
        for (node, (x, y)) in &places.hosts {
            let colour = if self.slow.contains(node) { colours.slow } else { colours.line };
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"2.4\" height=\"8\" fill=\"{colour}\"/>",
                x - 1.2,
                y - 4.0
            );
            if hot.contains(node) {
                // Below all hosts of its switch, so that its name covers none.
                let tip = places.under(*node, *y);
                let _ = writeln!(
                    svg,
                    "<path d=\"M{x:.1} {tip:.1}l5 9h-10z\" fill=\"{}\"/>",
                    colours.ink
                );
                let name = fabric.nodes().get(*node as usize).map_or("", |n| n.name.as_str());
                if hot.len() == 1 {
                    words(svg, (x + 9.0, tip + 9.0), (13.0, colours.ink), true, name);
                }
            }
        }
    }
}

/// Where nodes of a panel are.
struct Places {
    /// By node; only those of switches mean anything.
    switches: Vec<(f64, f64)>,
    hosts: BTreeMap<u32, (f64, f64)>,
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
        let mut rows: BTreeMap<u64, usize> = BTreeMap::new();
        for (place, _) in places.iter().zip(&is_switch).filter(|(_, is)| **is) {
            *rows.entry(place.1.to_bits()).or_insert(0) += 1;
        }
        let widest = rows.into_values().max().unwrap_or(1);
        let half = (area.width / (2.9 * widest as f64)).clamp(2.0, 16.0);
        let inner = area.width - 2.0 * half - 12.0;
        let down = area.height - 72.0;
        let place = |(x, y, _): &(f64, f64, Option<u32>)| {
            let y = if high > low { (y - low) / (high - low) } else { 0.5 };
            (area.left + half + 6.0 + x * inner, area.top + 12.0 + y * down)
        };
        let switches: Vec<(f64, f64)> = places.iter().map(place).collect();
        let mut hosts = BTreeMap::new();
        for id in fabric.ids(NodeKind::Switch) {
            let (x, y) = switches[id.index()];
            let below = fabric.neighbours(id).map(|(_, _, peer)| peer.node);
            let below: Vec<u32> =
                below.filter(|peer| !is_switch[peer.index()]).map(|peer| peer.0).collect();
            let columns = below.len().min(HOSTS_IN_ROW);
            for (index, host) in below.into_iter().enumerate() {
                let (column, row) = (index % HOSTS_IN_ROW, index / HOSTS_IN_ROW);
                let aside = (column as f64 - (columns as f64 - 1.0) / 2.0) * 3.6;
                hosts.insert(host, (x + aside, y + 14.0 + row as f64 * 11.0));
            }
        }
        Places { switches, hosts, is_switch, half }
    }

    /// Below the hosts that stand near one.
    fn under(&self, host: u32, y: f64) -> f64 {
        let x = self.hosts.get(&host).map_or(0.0, |place| place.0);
        let near = self.hosts.values().filter(|(other, _)| (other - x).abs() < 40.0);
        near.map(|place| place.1).filter(|other| (other - y).abs() < 40.0).fold(y, f64::max) + 7.0
    }

    fn of_node(&self, node: u32) -> Option<(f64, f64)> {
        match self.is_switch.get(node as usize)? {
            true => self.switches.get(node as usize).copied(),
            false => self.hosts.get(&node).copied(),
        }
    }
}
