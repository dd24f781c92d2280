//! What a run measured: figures of flows, series, and what people see.

mod measured;
mod page;
mod series;
mod summary;

pub use measured::{MeasureError, Measured, MeasuredFlow, MeasuredHost, jain, measure};
pub use page::{finding, page, remarks, table};
pub use series::series;
pub use summary::summary;
