//! Agents and a controller on loopback: whole runs, and who tries what may not be done.

mod attacks;
mod plans;
mod runs;
mod site;
