//! Threads that send and receive give way to those that hear the controller. A host may have some
//! hundred connections at full speed on two cores. A word of the controller would wait there until
//! each of their threads had its turn, and a lease would run out although it was renewed.

use rustix::process::{getpriority_process, setpriority_process};

/// Nice value of a thread that sends or receives: it has a ninth of the weight of others
/// (sched(7)). A host whose cores are idle sends as fast as without it.
const NICE: i32 = 10;

/// Has the calling thread give way, unless it does so already. Where the system does not allow it,
/// nothing changes.
pub(super) fn give_way() {
    // On Linux a nice value is a thread's own, and no number means the calling thread
    // (setpriority(2)).
    if getpriority_process(None).is_ok_and(|nice| nice < NICE) {
        let _ = setpriority_process(None, NICE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_way_and_no_other_one_with_it() {
        let before = getpriority_process(None).unwrap();
        let there = std::thread::spawn(|| {
            give_way();
            getpriority_process(None).unwrap()
        });
        assert_eq!(there.join().unwrap(), NICE.max(before));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
