//! What happens between two libraries: eager messages are there when they have come; a longer one
//! is announced (RTS), read by its receiver (RDMA READ) and acknowledged (FIN), as UCX's get
//! protocol does it. A CPU is busy for the sender's overhead with each message it posts, and for
//! the receiver's with each it takes.

use crate::perform::unpaced;
use crate::process::{Due, Partial, Task, Waiting, partial_key};
use crate::ranks::Ranks;
use crate::requests::{Doing, State};
use crate::settings::Progress;
use crate::transport::{Envelope, Kind, Outgoing, Transport, What};
use clearlane_workload::{Completion, Event, Handle, Hints};
use std::cmp::Reverse;

impl Ranks {
    /// A receive has met its message; `called` if its own call has, and when.
    pub(crate) fn meet<T: Transport>(
        &mut self,
        fabric: &mut T,
        at: u32,
        handle: Handle,
        envelope: Envelope,
        called: Option<u64>,
    ) {
        let record = &mut self.records[at as usize];
        let library = record.library();
        if let Some(request) = library.requests.get_mut(handle) {
            request.met = Some(envelope);
        }
        match (envelope.kind, called) {
            (Kind::Eager, _) => match library.partial.get_mut(&partial_key(&envelope)) {
                Some(partial) => *partial = Partial::Met(handle),
                None => self.received(fabric, at, handle),
            },
            // A FIN is matched by its token: it never comes here.
            (_, Some(clock)) => _ = self.work(fabric, at, Task::Read(handle), clock),
            (_, None) => self.work_or_wait(fabric, at, Task::Read(handle)),
        }
    }

    /// The data that an operation reads are here.
    pub(crate) fn has_read<T: Transport>(&mut self, fabric: &mut T, at: u32, handle: Handle) {
        let request = self.library(at).requests.get(handle);
        match request.map(|request| request.doing) {
            Some(Doing::Receive(_)) => self.work_or_wait(fabric, at, Task::Finish(handle)),
            _ => self.received(fabric, at, handle),
        }
    }

    /// Does what a long message needs, if anybody can, or leaves it to the CPU's next call.
    fn work_or_wait<T: Transport>(&mut self, fabric: &mut T, at: u32, task: Task) {
        let record = &mut self.records[at as usize];
        let begin = match (self.settings.progress, record.is_in_call()) {
            (Progress::Async, _) => fabric.now(),
            (Progress::Call, true) => fabric.now().max(record.clock),
            (Progress::Call, false) => return record.library().tasks.push_back(task),
        };
        self.work(fabric, at, task, begin);
    }

    /// Does what a long message needs, from `begin` on. Returns when it is done.
    pub(crate) fn work<T: Transport>(
        &mut self,
        fabric: &mut T,
        at: u32,
        task: Task,
        begin: u64,
    ) -> u64 {
        let (send, receive) = (self.settings.send_overhead, self.settings.receive_overhead);
        let (handle, cost) = match task {
            // The request to send is a message taken, the read one posted.
            Task::Read(handle) => (handle, receive + send),
            Task::Finish(handle) => (handle, send),
        };
        let record = &mut self.records[at as usize];
        let from = record.number;
        let request = record.library().requests.get(handle);
        let Some(met) = request.and_then(|request| request.met) else { return begin };
        let ready = begin + cost;
        if self.settings.progress == Progress::Call {
            record.clock = record.clock.max(ready);
        }
        let (bytes, what) = match (task, met.kind) {
            (Task::Read(_), _) => (met.bytes, What::Read { token: handle.0 }),
            (Task::Finish(_), Kind::RequestToSend { token, .. }) => {
                let kind = Kind::Finished { token };
                let envelope = Envelope { from, to: met.from, kind, ..met };
                (self.settings.control_bytes, What::Message { envelope, token: None })
            }
            // Nothing but a request to send is read.
            (Task::Finish(_), _) => return begin,
        };
        // The sender's stream is none of this CPU's, and a FIN is one packet.
        let asked = match met.kind {
            Kind::RequestToSend { hints, .. } => Hints { stream: 0, ..hints },
            _ => Hints::default(),
        };
        let hints = if matches!(task, Task::Finish(_)) { unpaced(asked) } else { asked };
        let (to, born, group) = (met.from, begin, met.group);
        let stripe_overhead = self.settings.stripe_overhead;
        let message =
            Outgoing { from, to, born, ready, stripe_overhead, bytes, group, hints, what };
        self.hand_over(fabric, at, &message);
        if let Task::Finish(handle) = task {
            self.complete(fabric, at, handle, ready, receive);
        }
        ready
    }

    /// An operation is complete at `time`, and the CPU that asks for it busy with it for `cost`.
    pub(crate) fn complete<T: Transport>(
        &mut self,
        fabric: &mut T,
        at: u32,
        handle: Handle,
        time: u64,
        cost: u64,
    ) {
        let record = &mut self.records[at as usize];
        let Some(request) = record.library().requests.get(handle) else { return };
        let (stream, tracked) = (request.stream, request.tracked);
        if !tracked {
            _ = record.library().requests.end(handle);
            return;
        }
        if stream > 0 {
            // What costs no CPU waits for none.
            let end = if cost > 0 { record.occupy(stream, time, cost) } else { time };
            return self.complete_later(fabric, at, handle, end, 0);
        }
        // A CPU that goes on with long messages itself is busy until then, and sees nothing sooner.
        match self.settings.progress {
            Progress::Call => self.is_done(fabric, at, handle, time, cost),
            Progress::Async => self.complete_later(fabric, at, handle, time, cost),
        }
    }

    /// An operation will be complete at `time`.
    pub(crate) fn complete_later<T: Transport>(
        &mut self,
        fabric: &mut T,
        at: u32,
        handle: Handle,
        time: u64,
        cost: u64,
    ) {
        if time <= fabric.now() {
            return self.is_done(fabric, at, handle, time, cost);
        }
        self.begins(at);
        self.library(at).timers.push(Reverse((time, handle.0, cost)));
        fabric.wake(time);
    }

    /// Operations whose time has come are complete.
    #[inline(never)]
    pub(crate) fn run_timers<T: Transport>(&mut self, fabric: &mut T, at: u32) {
        let now = fabric.now();
        while let Some(Reverse((time, handle, cost))) = self.library(at).timers.peek().copied() {
            if time > now {
                return;
            }
            self.library(at).timers.pop();
            self.is_over(at);
            self.is_done(fabric, at, Handle(handle), time, cost);
        }
    }

    /// An operation is complete: whoever waits for it goes on.
    fn is_done<T: Transport>(
        &mut self,
        fabric: &mut T,
        at: u32,
        handle: Handle,
        time: u64,
        cost: u64,
    ) {
        let record = &mut self.records[at as usize];
        let waiting = record.waiting;
        let Some(request) = record.library().requests.get_mut(handle) else { return };
        request.state = State::Done { cost };
        if waiting == Waiting::Next {
            return self.take_awaited(fabric, at, handle, time, cost);
        }
        if !request.awaited {
            if let Some(finished) = &mut record.library().finished {
                finished.push_back(handle);
            }
            return;
        }
        match waiting {
            Waiting::One(_) => self.take_awaited(fabric, at, handle, time, cost),
            Waiting::Any => {
                let library = self.library(at);
                for other in std::mem::take(&mut library.awaited) {
                    library.requests.mark(other, false);
                }
                self.take_awaited(fabric, at, handle, time, cost);
            }
            Waiting::All => {
                request.awaited = false;
                let record = &mut self.records[at as usize];
                record.clock = record.clock.max(time) + cost;
                record.library().missing -= 1;
                if record.library().missing == 0 {
                    self.all_are_there(fabric, at);
                }
            }
            Waiting::Next | Waiting::Time(_) | Waiting::Probe | Waiting::Ended => {}
        }
    }

    /// The CPU that has waited for an operation takes it in hand.
    fn take_awaited<T: Transport>(
        &mut self,
        fabric: &mut T,
        at: u32,
        handle: Handle,
        time: u64,
        cost: u64,
    ) {
        let record = &mut self.records[at as usize];
        record.clock = record.clock.max(time) + cost;
        let received = record.library().requests.end(handle);
        let clock = record.clock;
        self.library(at).answer = Some(Event::Completed(Completion { handle, received }));
        self.resume(fabric, at, clock, Due::Answer);
    }
}
