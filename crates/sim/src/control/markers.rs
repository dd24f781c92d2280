//! Switch outputs and lanes as markers see them.

use super::SharedMechanisms;
use crate::Parameters;
use crate::model::Markers;
use crate::port::PortIndex;
use crate::records::{Records, index};
use crate::saved::SavedOutput;
use clearlane_congestion::{Departing, Marker, Output, OutputQueue};
use clearlane_ib::random::Stream;
use clearlane_ib::{Bytes, Picoseconds, VirtualLane};

index!(
    /// A lane of a port.
    OutputLaneIndex
);

/// One output and lane. One cache line.
#[repr(align(64))]
pub(super) struct OutputLane {
    pub(super) queue: OutputQueue,
    /// Bytes in the queue from which on the markers are told: shorter queues mean nothing to them.
    pub(super) told_from: u64,
    pub(super) markers: Vec<Box<dyn Marker>>,
    pub(super) draws: Stream,
}

impl OutputLane {
    /// The queue is as long as it is now.
    #[inline(always)]
    fn changed(&mut self, now: u64) {
        if self.queue.queued.0 >= self.told_from {
            self.tell(now);
        }
    }

    #[inline(never)]
    fn tell(&mut self, now: u64) {
        for marker in &mut self.markers {
            marker.on_changed(Picoseconds(now), &self.queue);
        }
        self.told_from = told_from(&self.markers);
    }

    /// Whether a packet that leaves the queue as it is now is marked.
    #[inline(never)]
    fn mark(&mut self, now: u64, bytes: u16) -> bool {
        let mut marked = false;
        // One draw for the packet: two mechanisms that each mark one in two mark the same ones.
        let draw = self.draws.bits();
        for marker in &mut self.markers {
            marker.on_changed(Picoseconds(now), &self.queue);
            let packet = Departing { bytes: bytes.into() };
            marked |= marker.mark(Picoseconds(now), &self.queue, &packet, draw);
        }
        self.told_from = told_from(&self.markers);
        marked
    }
}

/// The least queue that means anything to any of these markers.
pub(super) fn told_from(markers: &[Box<dyn Marker>]) -> u64 {
    let idle = markers.iter().map(|marker| marker.idle_up_to());
    let from = idle.map(|upto| upto.map_or(0, |upto| upto.0.saturating_add(1)));
    from.min().unwrap_or(u64::MAX)
}

/// The markers of a partition's switches.
pub(crate) struct OutputMarkers {
    /// By port and lane; ports of adapters have no markers.
    pub(super) lanes: Records<OutputLaneIndex, OutputLane>,
    pub(super) lanes_per_port: u32,
}

/// A port, as its markers are made for it: nothing of an adapter's.
pub(crate) struct MarkedPort {
    pub(crate) node: u32,
    pub(crate) port: u8,
    pub(crate) faces_adapter: bool,
}

impl OutputMarkers {
    /// The markers of ports in their order, with so many lanes each; nothing for adapters' ports.
    pub(crate) fn new(
        mechanisms: &SharedMechanisms,
        ports: impl Iterator<Item = Option<MarkedPort>>,
        lanes: u8,
        parameters: &Parameters,
    ) -> Self {
        let packet_max = parameters.packet_bytes_max();
        let of_port = |port: Option<MarkedPort>| {
            (0..lanes).map(move |lane| {
                let port = port.as_ref();
                let (node, number) = port.map_or((0, 0), |port| (port.node, port.port));
                let output = Output {
                    node,
                    port: number,
                    lane: VirtualLane::new(lane).unwrap_or_default(),
                    faces_adapter: port.is_some_and(|port| port.faces_adapter),
                    buffer: parameters.buffer,
                    packet_max,
                };
                let entity = u64::from(node) << 16 | u64::from(number) << 8 | u64::from(lane);
                let all = mechanisms.all().filter(|_| port.is_some());
                let markers: Vec<_> =
                    all.filter_map(|mechanism| mechanism.marker(&output)).collect();
                OutputLane {
                    queue: OutputQueue { queued: Bytes(0), starved: false },
                    told_from: told_from(&markers),
                    markers,
                    draws: Stream::new(mechanisms.seed, "marking", entity),
                }
            })
        };
        let lanes_of_all: Vec<OutputLane> = ports.flat_map(of_port).collect();
        OutputMarkers { lanes: lanes_of_all.into(), lanes_per_port: lanes.into() }
    }

    #[inline(always)]
    fn lane(&mut self, output: PortIndex, lane: u8) -> &mut OutputLane {
        &mut self.lanes[OutputLaneIndex(output.0 * self.lanes_per_port + u32::from(lane))]
    }
}

impl Markers for OutputMarkers {
    const ON: bool = true;

    fn queued(&self, output: PortIndex, lane: u8) -> Option<u64> {
        let index = OutputLaneIndex(output.0 * self.lanes_per_port + u32::from(lane));
        Some(self.lanes[index].queue.queued.0)
    }

    fn save(&self) -> Vec<SavedOutput> {
        self.save_lanes()
    }

    fn load(&mut self, saved: &[SavedOutput]) -> Option<()> {
        self.load_lanes(saved)
    }

    #[inline(always)]
    fn on_queued(&mut self, now: u64, output: PortIndex, lane: u8, bytes: u16) {
        let of = self.lane(output, lane);
        of.queue.queued.0 += u64::from(bytes);
        of.changed(now);
    }

    #[inline(always)]
    fn on_moved_away(&mut self, now: u64, output: PortIndex, lane: u8, bytes: u16) {
        let of = self.lane(output, lane);
        of.queue.queued.0 -= u64::from(bytes);
        of.changed(now);
    }

    #[inline(always)]
    fn on_starved(&mut self, output: PortIndex, lane: u8) {
        self.lane(output, lane).queue.starved = true;
    }

    #[inline(always)]
    fn on_departed(
        &mut self,
        now: u64,
        output: PortIndex,
        lane: u8,
        bytes: u16,
        may: bool,
    ) -> bool {
        let of = self.lane(output, lane);
        of.queue.queued.0 -= u64::from(bytes);
        let marked = if of.queue.queued.0 < of.told_from {
            // Every data packet has a draw of its own, whether anybody looks at it or not.
            if may {
                of.draws.skip();
            }
            false
        } else if may {
            of.mark(now, bytes)
        } else {
            of.tell(now);
            false
        };
        of.queue.starved = false;
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Mechanisms;
    use clearlane_congestion::{Parameter, Value, Values, mechanisms};

    #[test]
    fn an_output_and_lane_is_one_cache_line() {
        assert_eq!(size_of::<OutputLane>(), 64);
    }

    /// A marker that is told everything.
    struct Told(Box<dyn Marker>);

    impl Marker for Told {
        fn on_changed(&mut self, now: Picoseconds, queue: &OutputQueue) {
            self.0.on_changed(now, queue);
        }

        fn mark(&mut self, now: Picoseconds, of: &OutputQueue, it: &Departing, draw: u64) -> bool {
            self.0.mark(now, of, it, draw)
        }

        fn save(&self) -> clearlane_congestion::Saved {
            self.0.save()
        }

        fn load(
            &mut self,
            saved: &clearlane_congestion::Saved,
        ) -> Result<(), clearlane_congestion::StateError> {
            self.0.load(saved)
        }
    }

    /// What markers are spared changes nothing: the same packets are marked as when they are told
    /// of every change, over queues that rise above their thresholds and fall below.
    #[test]
    fn markers_that_are_spared_mark_the_same_packets() {
        let parameters = (crate::preset::ALL[0].parameters)();
        let built = |name| {
            let entry = mechanisms::by_name(name).expect("it is registered");
            Some((entry.build)(&Values::default()).expect("its defaults"))
        };
        let markers = || {
            let (when, which) = (built("iba-cc"), built("dcqcn"));
            let mechanisms = Mechanisms { when, which, seed: 1 }.into();
            let ports = [Some(MarkedPort { node: 1, port: 1, faces_adapter: true })].into_iter();
            OutputMarkers::new(&mechanisms, ports, 1, &parameters)
        };
        let (mut spared, mut told) = (markers(), markers());
        let of = told.lane(PortIndex(0), 0);
        of.markers = std::mem::take(&mut of.markers)
            .into_iter()
            .map(|marker| Box::new(Told(marker)) as Box<dyn Marker>)
            .collect();
        of.told_from = told_from(&of.markers);
        assert!(of.told_from == 0 && spared.lane(PortIndex(0), 0).told_from > 0);
        let (mut draws, mut waiting, mut marked) = (Stream::new(1, "test", 0), 0u32, 0);
        for now in 0..200_000 {
            // Rises for a while, then falls.
            let arrives = draws.below(1000) < if now % 2000 < 1000 { 560 } else { 440 };
            let (output, starves) = (PortIndex(0), draws.below(4) == 0);
            if arrives || waiting == 0 {
                waiting += 1;
                spared.on_queued(now, output, 0, 2074);
                told.on_queued(now, output, 0, 2074);
                continue;
            }
            waiting -= 1;
            let may = draws.below(5) > 0;
            let both = [&mut spared, &mut told].map(|it| {
                if starves {
                    it.on_starved(output, 0);
                }
                it.on_departed(now, output, 0, 2074, may)
            });
            assert_eq!(both[0], both[1], "at {now} with {waiting} waiting");
            marked += u32::from(both[0]);
        }
        assert!(marked > 1000, "{marked} marked");
    }

    /// Two mechanisms that each mark one packet in two: together they mark one in two, not three in
    /// four, because both see the same draw.
    #[test]
    fn two_mechanisms_mark_no_more_than_one_where_they_would_mark_the_same() {
        let entry = mechanisms::by_name("iba-cc").expect("it is registered");
        let named = |name: &str| -> &'static Parameter {
            let found = entry.parameters.iter().find(|parameter| parameter.name == name);
            found.expect("iba-cc has it")
        };
        let marked = |both: bool| {
            let mut values = Values::default();
            for (name, value) in [("marking_rate", 1), ("packet_size", 0), ("threshold", 15)] {
                values.set(named(name), Value::Integer(value)).expect("in range");
            }
            let built = || (entry.build)(&values).expect("it is built");
            let which = both.then(built);
            let mechanisms = Mechanisms { when: Some(built()), which, seed: 1 }.into();
            let parameters = (crate::preset::ALL[0].parameters)();
            let port = MarkedPort { node: 1, port: 1, faces_adapter: true };
            let ports = [Some(port)].into_iter();
            let mut markers = OutputMarkers::new(&mechanisms, ports, 1, &parameters);
            let output = PortIndex(0);
            (0..400).for_each(|_| markers.on_queued(0, output, 0, 2000));
            // The queue stays above every threshold.
            (0..200).filter(|now| markers.on_departed(*now, output, 0, 2000, true)).count()
        };
        let (one, both) = (marked(false), marked(true));
        assert!((80..120).contains(&one), "{one} of 200");
        assert_eq!(both, one);
    }

    /// Credits that were missing make a victim of an output for one departure.
    #[test]
    fn a_port_is_a_victim_until_its_next_departure() {
        let entry = mechanisms::by_name("iba-cc").expect("it is registered");
        let mut values = Values::default();
        for (name, value) in [
            ("marking_rate", Value::Integer(0)),
            ("packet_size", Value::Integer(0)),
            ("victim_mask", Value::Word("none")),
        ] {
            let found = entry.parameters.iter().find(|parameter| parameter.name == name);
            values.set(found.expect("iba-cc has it"), value).expect("in range");
        }
        let when = Some((entry.build)(&values).expect("it is built"));
        let mechanisms = Mechanisms { when, which: None, seed: 1 }.into();
        let port = MarkedPort { node: 1, port: 1, faces_adapter: true };
        let parameters = (crate::preset::ALL[0].parameters)();
        let ports = [Some(port)].into_iter();
        let (mut markers, output) =
            (OutputMarkers::new(&mechanisms, ports, 1, &parameters), PortIndex(0));
        (0..400).for_each(|_| markers.on_queued(0, output, 0, 2000));
        let marks = [false, true, true, false].map(|starved| {
            if starved {
                markers.on_starved(output, 0);
            }
            markers.on_departed(0, output, 0, 2000, true)
        });
        assert_eq!(marks, [true, false, false, true]);
    }
}
