//! The marker: a threshold on the bytes that wait, root or victim, and how many packets pay for it.

use super::{MARKING_RATE, PACKET_SIZE, THRESHOLD, VICTIM_MASK};
use crate::marker::{Departing, Marker, OutputQueue};
use crate::mechanism::Output;
use crate::parameter::{Parameter, Values};
use clearlane_ib::{Bytes, Picoseconds, Saved, StateError};

/// Settings of switch ports (IBA vol. 1, A10.4.3.6, SwitchCongestionSetting).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mechanisms) struct MarkerSettings {
    /// 0 marks nothing; the queue that counts as congestion falls from 15/16 of a buffer at 1 to
    /// 1/16 at 15.
    threshold: u8,
    /// Mean number of packets between two marked ones.
    marking_rate: u16,
    /// Smaller packets are not marked, in credits of 64 B.
    packet_size: u8,
    victims: Victims,
}

/// Which ports mark while they are victims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victims {
    /// None.
    None,
    /// Those that lead to channel adapters.
    FacingAdapters,
    /// All.
    All,
}

impl Victims {
    /// Those of a parameter victim_mask.
    pub(super) fn of(values: &Values) -> Self {
        match values.word(&VICTIM_MASK) {
            "none" => Victims::None,
            "all" => Victims::All,
            _ => Victims::FacingAdapters,
        }
    }
}

impl MarkerSettings {
    /// Those of the whole fabric: `threshold` and `marking_rate` are the parameters of the
    /// mechanism that uses the marker, which has defaults of its own for them.
    pub(in crate::mechanisms) fn new(
        values: &Values,
        threshold: &Parameter,
        marking_rate: &Parameter,
    ) -> Self {
        MarkerSettings {
            threshold: values.integer(threshold) as u8,
            marking_rate: values.integer(marking_rate) as u16,
            packet_size: values.integer(&PACKET_SIZE) as u8,
            victims: Victims::of(values),
        }
    }

    /// These with what a port sets for itself (A10.4.3.7, SwitchPortCongestionSetting).
    pub(super) fn with(mut self, values: &Values) -> Self {
        if values.is_set(&THRESHOLD) {
            self.threshold = values.integer(&THRESHOLD) as u8;
        }
        if values.is_set(&MARKING_RATE) {
            self.marking_rate = values.integer(&MARKING_RATE) as u16;
        }
        if values.is_set(&PACKET_SIZE) {
            self.packet_size = values.integer(&PACKET_SIZE) as u8;
        }
        self
    }

    /// The marker of an output and lane, whose states are kept as `of`; nothing if it would never
    /// mark.
    pub(in crate::mechanisms) fn marker(
        self,
        of: &'static str,
        output: &Output,
    ) -> Option<Box<dyn Marker>> {
        if self.threshold == 0 {
            return None;
        }
        let packet_max = u64::from(output.packet_max);
        let steps = 16 - u64::from(self.threshold.min(15));
        let set_above = (output.buffer.0.saturating_mul(steps) / 16).max(packet_max);
        Some(Box::new(FecnMarker {
            of,
            set_above: Bytes(set_above),
            // Less than one packet between the two biases arbitration (Gran et al., CCGrid 2011).
            clear_at: Bytes(set_above - packet_max),
            marking_rate: self.marking_rate,
            bytes_min: u32::from(self.packet_size) * 64,
            marks_as_victim: match self.victims {
                Victims::None => false,
                Victims::FacingAdapters => output.faces_adapter,
                Victims::All => true,
            },
            over: false,
        }))
    }
}

/// The marker of one output and lane.
struct FecnMarker {
    of: &'static str,
    set_above: Bytes,
    clear_at: Bytes,
    marking_rate: u16,
    bytes_min: u32,
    marks_as_victim: bool,
    /// Whether the queue has risen above the one and not yet fallen to the other.
    over: bool,
}

const VERSION: u16 = 1;

impl Marker for FecnMarker {
    fn on_changed(&mut self, _now: Picoseconds, queue: &OutputQueue) {
        if queue.queued > self.set_above {
            self.over = true;
        } else if queue.queued <= self.clear_at {
            self.over = false;
        }
    }

    fn mark(
        &mut self,
        now: Picoseconds,
        queue: &OutputQueue,
        packet: &Departing,
        draw: u64,
    ) -> bool {
        // The packet has left the queue, whether or not that was told yet.
        self.on_changed(now, queue);
        let root = !queue.starved;
        if !self.over || packet.bytes < self.bytes_min || !(root || self.marks_as_victim) {
            return false;
        }
        // One in marking_rate + 1, by chance: counting would lock onto periodic arrivals.
        (u128::from(draw) * (u128::from(self.marking_rate) + 1)) >> 64 == 0
    }

    fn idle_up_to(&self) -> Option<Bytes> {
        (!self.over).then_some(self.set_above)
    }

    fn save(&self) -> Saved {
        Saved::new(self.of, VERSION, &self.over)
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        self.over = saved.state(self.of, VERSION)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::Value;
    use clearlane_ib::VirtualLane;

    const PACKET: Departing = Departing { bytes: 2074 };
    const NOW: Picoseconds = Picoseconds(0);

    fn output(faces_adapter: bool) -> Output {
        Output {
            node: 3,
            port: 1,
            lane: VirtualLane::new(0).unwrap(),
            faces_adapter,
            buffer: Bytes(65_536),
            packet_max: 2074,
        }
    }

    fn marker(faces_adapter: bool, set: &[(&Parameter, Value)]) -> Option<Box<dyn Marker>> {
        let mut values = Values::default();
        values.set(&MARKING_RATE, Value::Integer(0)).unwrap();
        for (parameter, value) in set {
            values.set(parameter, value.clone()).unwrap();
        }
        let settings = MarkerSettings::new(&values, &THRESHOLD, &MARKING_RATE);
        settings.marker("test", &output(faces_adapter))
    }

    fn queue(queued: u64) -> OutputQueue {
        OutputQueue { queued: Bytes(queued), starved: false }
    }

    fn starved(queued: u64) -> OutputQueue {
        OutputQueue { queued: Bytes(queued), starved: true }
    }

    #[test]
    fn thresholds_are_sixteenths_of_the_buffer_but_at_least_a_packet() {
        for (threshold, above) in [(1, 61_440), (8, 32_768), (14, 8_192), (15, 4_096)] {
            let set = [(&THRESHOLD, Value::Integer(threshold))];
            let mut it = marker(false, &set).unwrap();
            assert!(!it.mark(NOW, &queue(above), &PACKET, 0), "{threshold}");
            assert!(it.mark(NOW, &queue(above + 1), &PACKET, 0), "{threshold}");
        }
        let small = Output { buffer: Bytes(8_192), ..output(false) };
        let settings = MarkerSettings::new(&Values::default(), &THRESHOLD, &MARKING_RATE);
        let mut it = settings.marker("test", &small).unwrap();
        assert!(!it.mark(NOW, &queue(2_074), &PACKET, 0));
        assert!(it.mark(NOW, &queue(2_075), &PACKET, 0));
        assert!(marker(true, &[(&THRESHOLD, Value::Integer(0))]).is_none());
    }

    #[test]
    fn congestion_ends_one_packet_below_where_it_begins() {
        let mut it = marker(false, &[]).unwrap();
        it.on_changed(NOW, &queue(4_097));
        it.on_changed(NOW, &queue(4_096 - 2_074 + 1));
        assert!(it.mark(NOW, &queue(4_096 - 2_074 + 1), &PACKET, 0));
        it.on_changed(NOW, &queue(4_096 - 2_074));
        assert!(!it.mark(NOW, &queue(4_096), &PACKET, 0));
    }

    #[test]
    fn a_victim_marks_only_where_the_mask_covers_its_port() {
        let marks = |faces_adapter, mask| {
            let mut it = marker(faces_adapter, &[(&VICTIM_MASK, Value::Word(mask))]).unwrap();
            assert!(it.mark(NOW, &queue(9_000), &PACKET, 0), "a root always marks");
            it.mark(NOW, &starved(9_000), &PACKET, 0)
        };
        assert_eq!(["none", "adapters", "all"].map(|mask| marks(true, mask)), [false, true, true]);
        assert_eq!(
            ["none", "adapters", "all"].map(|mask| marks(false, mask)),
            [false, false, true]
        );
    }

    #[test]
    fn packets_below_the_packet_size_leave_unmarked() {
        let mut it = marker(false, &[]).unwrap();
        assert!(!it.mark(NOW, &queue(9_000), &Departing { bytes: 511 }, 0));
        assert!(it.mark(NOW, &queue(9_000), &Departing { bytes: 512 }, 0));
    }

    #[test]
    fn one_packet_in_marking_rate_plus_one_is_marked() {
        let mut it = marker(false, &[(&MARKING_RATE, Value::Integer(2))]).unwrap();
        let third = u64::MAX / 3;
        assert!(it.mark(NOW, &queue(9_000), &PACKET, third));
        assert!(!it.mark(NOW, &queue(9_000), &PACKET, third + 1));
        let mut it = marker(false, &[]).unwrap();
        assert!(it.mark(NOW, &queue(9_000), &PACKET, u64::MAX));
    }

    #[test]
    fn a_state_goes_on_where_it_was_left_and_nowhere_else() {
        let mut it = marker(false, &[]).unwrap();
        it.on_changed(NOW, &queue(9_000));
        let mut other = marker(false, &[]).unwrap();
        other.load(&it.save()).unwrap();
        assert!(other.mark(NOW, &queue(3_000), &PACKET, 0));
        let foreign = Saved { version: 9, ..it.save() };
        assert!(other.load(&foreign).is_err());
    }
}
