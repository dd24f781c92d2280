//! MPI: processes hand each other byte strings (MPI 3.1, sections 3.7 and 3.8).

use crate::failure::Failure;
use clearlane_lab::Fleet;
use mpi::Threading;
use mpi::environment::Universe;
use mpi::point_to_point::{Destination, MatchedReceiveVec, Source};
use mpi::topology::{Communicator, SimpleCommunicator};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Counts of MPI are of 31 bits: longer strings go in pieces of this length, the last of which is
/// shorter.
const PIECE: usize = 1 << 30;

/// Looks for a message before others may have the core, and then before this process sleeps: where
/// there are more processes than cores, whoever waits must not take the core of who works.
const SPINS: u32 = 1000;
const YIELDS: u32 = 1000;
const SLEEP: Duration = Duration::from_micros(50);

/// How long a process that has failed waits for the first to have said it: most faults are found by
/// all of them.
const FIRST_SPEAKS: Duration = Duration::from_secs(2);

/// MPI, until it is let go.
pub struct World {
    // Finalizes MPI when it is dropped.
    _universe: Universe,
    member: Member,
}

/// This process in MPI_COMM_WORLD.
#[derive(Clone, Copy)]
struct Member {
    rank: usize,
    size: usize,
}

impl World {
    /// Initializes MPI. Fails if that cannot be done, or MPI would not take calls of one thread
    /// after another.
    pub fn join() -> Result<Self, Failure> {
        let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Serialized)
        else {
            return Err(Failure::Machine("MPI is initialized already; start one clearlane".into()));
        };
        if threading < Threading::Serialized {
            let problem = "this MPI takes no calls of several threads; take one that was built \
                           with thread support";
            return Err(Failure::Machine(problem.into()));
        }
        let world = universe.world();
        let member = Member { rank: world.rank() as usize, size: world.size() as usize };
        Ok(World { _universe: universe, member })
    }

    /// The processes as runs use them.
    pub fn fleet(&self) -> Arc<dyn Fleet> {
        Arc::new(self.member)
    }

    /// Ends all processes with a code.
    pub fn abort(&self, code: u8) {
        SimpleCommunicator::world().abort(code.into())
    }

    /// Lets the first process speak: if it has failed too, it ends this one.
    pub fn wait_for_first(&self) {
        if self.member.rank > 0 {
            thread::park_timeout(FIRST_SPEAKS);
        }
    }
}

impl Member {
    /// Takes the next string from a process.
    fn take(world: &SimpleCommunicator, from: usize) -> Vec<u8> {
        let source = world.process_at_rank(from as i32);
        let mut bytes: Vec<u8> = Vec::new();
        loop {
            let mut looks = 0;
            let message = loop {
                if let Some(message) = source.immediate_matched_probe() {
                    break message;
                }
                looks = (looks + 1).min(SPINS + YIELDS);
                match looks {
                    ..SPINS => std::hint::spin_loop(),
                    looks if looks < SPINS + YIELDS => thread::yield_now(),
                    _ => thread::park_timeout(SLEEP),
                }
            };
            let (piece, _) = message.matched_receive_vec::<u8>();
            let is_last = piece.len() < PIECE;
            match bytes.is_empty() {
                true => bytes = piece,
                false => bytes.extend(piece),
            }
            if is_last {
                return bytes;
            }
        }
    }
}

impl Fleet for Member {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, mut sent: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let world = SimpleCommunicator::world();
        let mut received = vec![Vec::new(); self.size];
        received[self.rank] = std::mem::take(&mut sent[self.rank]);
        // Each begins behind itself, so that not all send to the first at once.
        let others = || (1..self.size).map(|step| (self.rank + step) % self.size);
        mpi::request::scope(|scope| {
            let mut requests = Vec::new();
            for to in others() {
                let target = world.process_at_rank(to as i32);
                let (pieces, rest) = sent[to].as_chunks::<PIECE>();
                let pieces = pieces.iter().map(|piece| piece.as_slice()).chain([rest]);
                requests.extend(pieces.map(|piece| target.immediate_send(scope, piece)));
            }
            for from in others() {
                received[from] = Member::take(&world, from);
            }
            requests.into_iter().for_each(|request| _ = request.wait());
        });
        received
    }
}
