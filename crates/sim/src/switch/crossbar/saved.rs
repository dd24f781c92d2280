//! Crossbars with limits of their own, as they are kept.

use super::Crossbars;
use crate::model::Model;
use crate::network::NetworkOf;
use crate::port::PortIndex;
use crate::saved::{Parts, Whole, holds};
use crate::switch::Switches;
use crate::switch::output_buffer::SavedOutputBuffer;
use serde::{Deserialize, Serialize};

/// What crossbars know; each list is empty where nothing of its kind limits them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedCrossbars {
    /// By port: until when it is read, and the output whose turn comes first.
    reads: Vec<(u64, u8)>,
    /// By output and lane: until when stages are paid again.
    allotted: Vec<u64>,
    /// By port.
    behind: Vec<SavedOutputBuffer>,
}

impl SavedCrossbars {
    /// Adds what those of the next partition know.
    pub(crate) fn append(&mut self, mut next: SavedCrossbars) {
        self.reads.append(&mut next.reads);
        self.allotted.append(&mut next.allotted);
        self.behind.append(&mut next.behind);
    }

    /// Where packets behind crossbars are, by port of the run, and where they are to go.
    pub(crate) fn ways(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let of = |(port, buffer): (u32, &SavedOutputBuffer)| {
            buffer.ways().map(move |lid| (port, lid)).collect::<Vec<_>>()
        };
        (0..).zip(&self.behind).flat_map(of)
    }
}

impl<M: Model> Switches<M> {
    /// What the crossbars of these switches know.
    pub(crate) fn save_crossbars<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        whole: &Whole<'_>,
    ) -> SavedCrossbars {
        let Crossbars { reads, allotted, behind, .. } = &self.crossbars;
        SavedCrossbars {
            reads: reads.iter().copied().collect(),
            allotted: allotted.iter().copied().collect(),
            behind: behind.save(net, whole),
        }
    }

    /// Crossbars that are about to begin become what they were.
    pub(crate) fn load_crossbars<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        saved: &SavedCrossbars,
        parts: &Parts<'_>,
    ) -> Option<()> {
        let (first, ports) = (parts.first.port as usize, net.ports.len());
        let Crossbars { settings, reads, allotted, .. } = &mut self.crossbars;
        if settings.by_port {
            *reads = saved.reads.get(first..first + ports)?.to_vec().into();
        }
        if settings.again > 0 {
            *allotted = saved.allotted.get(first * V..(first + ports) * V)?.to_vec().into();
        }
        if settings.room > 0 {
            for (port, buffer) in (0..).map(PortIndex).zip(saved.behind.get(first..first + ports)?)
            {
                let home = net.home_of(port);
                let of_switch = port.0 - home.first.0 < home.switch_ports.into();
                holds(of_switch || buffer.ways().next().is_none())?;
                self.load_behind(net, port, buffer, parts)?;
            }
        }
        Some(())
    }
}
