//! The processes that `mpirun` started: one clearlane each, all of which run one experiment.

#[cfg(feature = "mpi")]
mod world;

use crate::failure::Failure;
use clearlane_lab::Processes;

/// This process among those that were started together. Let go when all have ended in good order.
pub struct Joined {
    pub processes: Processes,
    #[cfg(feature = "mpi")]
    world: Option<world::World>,
}

/// How many processes Open MPI and MPICH say they have started.
fn started() -> usize {
    let said = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];
    let said = said.iter().filter_map(|name| std::env::var(name).ok()?.parse().ok());
    said.max().unwrap_or(1)
}

impl Joined {
    /// Joins those that were started together. Fails if there are several and this binary does not
    /// know how, because each would run the whole experiment and write the same folder.
    #[cfg(not(feature = "mpi"))]
    pub fn join() -> Result<Self, Failure> {
        match started() {
            1 => Ok(Joined { processes: Processes::default() }),
            count => Err(Failure::Input(format!(
                "mpirun started {count} processes, and this clearlane runs in one; start it \
                 without mpirun, or build it with `cargo build --release --features mpi`"
            ))),
        }
    }

    /// Joins those that were started together.
    #[cfg(feature = "mpi")]
    pub fn join() -> Result<Self, Failure> {
        // A process that was started by itself needs no MPI, and does not wait for it.
        if started() == 1 {
            return Ok(Joined { processes: Processes::default(), world: None });
        }
        let world = world::World::join()?;
        Ok(Joined { processes: Processes::of(world.fleet()), world: Some(world) })
    }

    /// Before this process says that it has failed: most faults are found by all, and told once.
    pub fn let_first_speak(&self) {
        #[cfg(feature = "mpi")]
        self.world.iter().for_each(world::World::wait_for_first);
    }

    /// This process has failed, and has said so: all others end too.
    #[cfg(feature = "mpi")]
    pub fn abort(&self, code: u8) {
        self.world.iter().for_each(|world| world.abort(code));
    }

    /// This process has failed, and there are no others.
    #[cfg(not(feature = "mpi"))]
    pub fn abort(&self, _: u8) {}

    /// Fails if a command that runs in one process was started in several.
    pub fn alone(&self, command: &str) -> Result<(), Failure> {
        match self.processes.count() {
            1 => Ok(()),
            count => Err(Failure::Input(format!(
                "mpirun started {count} processes, and `clearlane {command}` runs in one; of \
                 several processes only run, compare and resume make one run"
            ))),
        }
    }
}
