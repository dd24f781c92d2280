//! Agents and a controller on loopback: whole runs, and who tries what may not be done.

#[expect(clippy::disallowed_methods, reason = "how long stopping takes is what is tested")]
mod attacks;
#[expect(clippy::disallowed_methods, reason = "how long joining takes is what is tested")]
mod enrolment;
#[expect(clippy::disallowed_methods, reason = "an agent is lost while a run is under way")]
mod losses;
mod plans;
mod runs;
#[expect(clippy::disallowed_methods, reason = "agents work while a test waits")]
mod site;
#[expect(clippy::disallowed_methods, reason = "a flood goes on while a test waits")]
mod stalls;
