//! Captures of a simulated fabric: packets at chosen ports, written as a real capture would be.

mod encoder;

use crate::error::LabError;
use crate::folder::refused;
use crate::prepare::Prepared;
use crate::simulator::Simulator;
use clearlane_capture::write::{Container, Direction, ERF_INTERFACES, Style, Writer};
use clearlane_fabric::{Endpoint, Fabric, NodeKind, damage};
use clearlane_ib::{Picoseconds, PortNumber};
use clearlane_sim::{END_GRID, Status};
use encoder::Encoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// What is to be captured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureRequest {
    /// Ports: `H4`, all ports of a host or switch; `S2:3`, one; `hosts` and `all`.
    pub ports: Vec<String>,
    /// What is written of each packet, and in which file.
    pub style: Style,
    /// Where files are written, one for each variant's first seed.
    pub folder: PathBuf,
}

/// How the files of captures begin.
pub(crate) const CAPTURE_PREFIX: &str = "capture-";
/// How they end; the last has the names of addresses, in the syntax of `capture --names`.
pub(crate) const CAPTURE_ENDINGS: [&str; 3] = ["pcapng", "pcap", NAMES];
const NAMES: &str = "hosts";

/// The captures in a folder of results and their bytes, by name.
pub fn captures_in(folder: &Path) -> Vec<(PathBuf, u64)> {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut captures: Vec<(PathBuf, u64)> = all
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with(CAPTURE_PREFIX) && !name.ends_with(NAMES)
        })
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.len())))
        .collect();
    captures.sort();
    captures
}

impl CaptureRequest {
    /// What the files of a variant are called: packets, and names of addresses.
    fn files(&self, variant: &str) -> [String; 2] {
        let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let variant: String = variant.chars().map(plain).collect();
        let ending = match self.style.container {
            Container::Pcapng => "pcapng",
            Container::Erf => "pcap",
        };
        [ending, NAMES].map(|ending| format!("{CAPTURE_PREFIX}{variant}.{ending}"))
    }

    /// Fails if a variant lacks a port, or if two would have one file.
    pub(crate) fn fits<'a>(
        &self,
        variants: impl Iterator<Item = (&'a str, &'a Prepared)>,
    ) -> Result<(), LabError> {
        let mut owners = BTreeMap::new();
        for (variant, prepared) in variants {
            let fault = |problem| LabError::variant(variant, problem);
            self.resolve(&prepared.fabric).map_err(fault)?;
            let files = self.files(variant);
            let same = format!("--capture: {} would be of two variants; rename one", files[0]);
            if owners.insert(files, variant).is_some() {
                return Err(fault(same));
            }
        }
        Ok(())
    }

    /// The ports, in the order of the fabric. Fails on one that is not there, in words.
    pub(crate) fn resolve(&self, fabric: &Fabric) -> Result<Vec<Endpoint>, String> {
        let mut ports: Vec<Endpoint> = Vec::new();
        for text in &self.ports {
            let found =
                resolved(fabric, text.trim()).map_err(|why| format!("--capture {text}: {why}"))?;
            ports.extend(found);
        }
        ports.sort_unstable_by_key(|end| (end.node.0, end.port.value()));
        ports.dedup();
        if self.style.container == Container::Erf && ports.len() > ERF_INTERFACES {
            return Err(format!(
                "--capture: ibdump's format tells {ERF_INTERFACES} ports apart and {} are asked \
                 for; write pcapng, or capture fewer",
                ports.len()
            ));
        }
        Ok(ports)
    }
}

fn resolved(fabric: &Fabric, text: &str) -> Result<Vec<Endpoint>, String> {
    let cabled = |kind: Option<NodeKind>| -> Vec<Endpoint> {
        let ends = fabric.links().iter().flat_map(|link| [link.a, link.b]);
        ends.filter(|end| kind.is_none_or(|kind| fabric.node(end.node).kind == kind)).collect()
    };
    match text {
        "all" => return Ok(cabled(None)),
        "hosts" => return Ok(cabled(Some(NodeKind::ChannelAdapter))),
        _ => {}
    }
    // A name may have colons itself; results have ports as S2[3].
    let written = text.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
    let (name, port) = match written.or_else(|| text.rsplit_once(':')) {
        Some((name, port)) if damage::node(fabric, text).is_err() => (name, Some(port)),
        _ => (text, None),
    };
    let node = damage::node(fabric, name).map_err(|error| error.to_string())?;
    let ends: Vec<Endpoint> = match port {
        None => cabled(None).into_iter().filter(|end| end.node == node).collect(),
        Some(port) => {
            let number = port.parse().ok().and_then(PortNumber::new);
            let port = number.ok_or("is no port; write a host, or a switch and port as S2:3")?;
            let end = Endpoint { node, port };
            fabric.peer(end).map(|_| end).into_iter().collect()
        }
    };
    match ends.is_empty() {
        true => {
            let all = cabled(None).into_iter().filter(|end| end.node == node);
            let mut numbers: Vec<u8> = all.map(|end| end.port.value()).collect();
            numbers.sort_unstable();
            let numbers: Vec<String> = numbers.iter().map(u8::to_string).collect();
            Err(match numbers.is_empty() {
                true => "has no cable; name a node that has".into(),
                false => format!("has no cable; {name} has some at ports {}", numbers.join(", ")),
            })
        }
        false => Ok(ends),
    }
}

/// Packets that gather between two looks, about: their records stay in a core's cache.
const TAKEN_LEAST: usize = 2048;
const TAKEN_MOST: usize = 8192;
/// The shortest time between two looks, in picoseconds; others are doubles of it.
const STRIDE_LEAST: u64 = END_GRID.0;

/// The place of each captured port, by node and number: an array instead of a search, for it is
/// asked for each packet.
struct Places(Vec<Vec<Option<u32>>>);

impl Places {
    fn of(ports: &[Endpoint]) -> Self {
        let nodes = ports.iter().map(|end| end.node.0 as usize + 1).max().unwrap_or(0);
        let mut places = vec![Vec::new(); nodes];
        for (place, end) in (0..).zip(ports) {
            let of = &mut places[end.node.0 as usize];
            of.resize(of.len().max(usize::from(end.port.value()) + 1), None);
            of[usize::from(end.port.value())] = Some(place);
        }
        Places(places)
    }

    fn get(&self, node: u32, port: u8) -> Option<u32> {
        *self.0.get(node as usize)?.get(usize::from(port))?
    }
}

/// A capture under way.
pub(crate) struct Capturing {
    writer: Writer<File>,
    encoder: Encoder,
    path: PathBuf,
    /// Ports, in order: their places are the numbers of interfaces.
    ports: Vec<Endpoint>,
    places: Places,
    /// Simulated time between two looks at what was seen.
    stride: u64,
    failed: Option<std::io::Error>,
}

impl Capturing {
    /// Begins the file of a variant.
    pub(crate) fn begin(
        request: &CaptureRequest,
        prepared: &Prepared,
        (variant, seed): (&str, u64),
    ) -> Result<Self, LabError> {
        let fault = |problem: String| LabError::variant(variant, problem);
        let ports = request.resolve(&prepared.fabric).map_err(fault)?;
        let encoder = Encoder::of(prepared, seed).map_err(fault)?;
        let [path, hosts] = request.files(variant).map(|name| request.folder.join(name));
        let names: Vec<String> = ports.iter().map(|end| prepared.fabric.describe(*end)).collect();
        let begin = || {
            std::fs::write(&hosts, encoder.names(prepared))?;
            Writer::new(File::create(&path)?, request.style, &names)
        };
        let writer = begin().map_err(|source| refused(&path, source))?;
        let places = Places::of(&ports);
        Ok(Capturing { writer, encoder, path, ports, places, stride: STRIDE_LEAST, failed: None })
    }

    /// The ports.
    pub(crate) fn ports(&self) -> &[Endpoint] {
        &self.ports
    }

    /// Advances a simulation and writes what is seen, in strides in which few packets gather: the
    /// memory of a capture does not grow with the length of the run. What cannot be written stops
    /// the run, and is told by [`Capturing::finish`].
    pub(crate) fn advance(
        &mut self,
        simulation: &mut Simulator,
        until: Picoseconds,
        pause: &AtomicBool,
    ) -> Status {
        let mut reached = simulation.now().0;
        loop {
            reached = reached.saturating_add(self.stride).min(until.0);
            let status = simulation.advance(Picoseconds(reached), pause);
            let taken = self.take(simulation);
            if taken > TAKEN_MOST {
                self.stride = (self.stride / 2).max(STRIDE_LEAST);
            } else if taken < TAKEN_LEAST {
                self.stride = self.stride.saturating_mul(2);
            }
            if self.failed.is_some() {
                return Status::Paused;
            }
            if status != Status::Running || reached == until.0 {
                return status;
            }
        }
    }

    /// Writes what was seen since the last call, and says how many packets that were.
    fn take(&mut self, simulation: &mut Simulator) -> usize {
        let all = simulation.take_tapped();
        let taken = all.len();
        for tapped in all {
            if self.failed.is_some() {
                break;
            }
            let place = self.places.get(tapped.node, tapped.port);
            let (Some(place), Some(frame)) = (place, self.encoder.frame(&tapped)) else { continue };
            let direction = match tapped.granted {
                true => Direction::Outbound,
                false => Direction::Inbound,
            };
            let at = (tapped.time.0 / 1000, place, direction);
            let comment = self.encoder.comment(&tapped);
            self.failed = self.writer.frame(at, &frame, comment).err();
        }
        taken
    }

    /// The end of the file. Fails if any of it could not be written.
    pub(crate) fn finish(self) -> Result<(), LabError> {
        let Capturing { writer, path, failed, .. } = self;
        let end = match failed {
            Some(error) => Err(error),
            None => writer.finish().and_then(|file| file.sync_all()),
        };
        end.map_err(|source| refused(&path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::NodeId;

    #[test]
    fn a_port_has_the_place_it_has_in_the_list_and_others_have_none() {
        let ends = [(2, 1), (2, 4), (5, 1), (6, 3)];
        let ports: Vec<Endpoint> = ends
            .iter()
            .map(|(node, port)| Endpoint {
                node: NodeId(*node),
                port: PortNumber::new(*port).expect("small"),
            })
            .collect();
        let places = Places::of(&ports);
        for node in 0..9 {
            for port in 0..9 {
                let place = ends.iter().position(|end| *end == (node, port));
                assert_eq!(places.get(node, port), place.map(|at| at as u32), "{node}:{port}");
            }
        }
    }
}
