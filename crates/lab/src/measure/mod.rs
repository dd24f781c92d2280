//! What may be asked of results, and how it is answered. `kinds` has one measure a file; `asked`
//! says which of them with which arguments; `view` is what a measure of one run looks at, `answers`
//! what one that combines others asks. Nothing here knows how figures came about.

mod answers;
mod asked;
mod entry;
mod figures;
mod interval;
pub mod kinds;
mod open_paths;
mod slices;
mod view;

pub use answers::{Answers, At, Series, Varied};
pub use asked::{Arguments, Asked, Flow, Points, Provided, Scope, Span};
pub use entry::{AS_WITHIN, Answer, Entry, Parameter, Settles};
pub use figures::{
    ChannelFigures, Figures, FlowFigures, HELD_BACK, RunFigures, SenderShare, SeriesSlice,
    WarmUpFound,
};
pub use interval::Estimate;
pub(crate) use interval::student_t;
pub use slices::Slices;
pub use view::{Ideals, RecordView, RunView};

pub(crate) use open_paths::opened_to;
