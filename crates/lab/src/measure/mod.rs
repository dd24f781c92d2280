//! Figures out of what a simulation recorded: warm-up cut off, loads, latencies, fairness, links,
//! intervals over seeds, and the measures that stand beside published numbers.

mod figures;
mod history;
mod interval;
pub mod measures;
mod settled;
mod slices;
mod timed;
mod warm_up;

pub use figures::{
    ChannelFigures, Figures, FlowFigures, RunFigures, SenderShare, SeriesSlice, WarmUpFound,
};
pub use history::History;
pub(crate) use history::trim;
pub use interval::Estimate;
pub use measures::{Measure, Quantity, Scope};
pub use slices::Slices;
pub use timed::{Flow, Span, Timed};

pub(crate) use figures::figures;
pub(crate) use measures::HELD_BACK;
pub(crate) use timed::opened_to;
