//! The processes that a command is: one, or several that run an experiment together.

use clearlane_sim::Fleet;
use std::fmt;
use std::sync::Arc;

/// All processes of a command, as this one knows them.
#[derive(Clone, Default)]
pub struct Processes(Option<Arc<dyn Fleet>>);

impl Processes {
    /// Those of a fleet. Each is to run the same experiment with the same options; results are with
    /// the first.
    pub fn of(fleet: Arc<dyn Fleet>) -> Self {
        Processes(Some(fleet).filter(|fleet| fleet.size() > 1))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.as_ref().map_or(1, |fleet| fleet.size())
    }

    /// Whether this is the one that has the results.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// The number of this one, from 0.
    pub(crate) fn rank(&self) -> usize {
        self.0.as_ref().map_or(0, |fleet| fleet.rank())
    }

    pub(crate) fn fleet(&self) -> Option<Arc<dyn Fleet>> {
        self.0.clone()
    }

    /// Whether it is so in any of them: all ask at the same point.
    pub(crate) fn any(&self, here: bool) -> bool {
        let Some(fleet) = &self.0 else { return here };
        let sent = vec![vec![u8::from(here)]; fleet.size()];
        fleet.exchange(sent).iter().any(|told| told.as_slice() == [1])
    }
}

impl fmt::Debug for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Processes({})", self.count())
    }
}
