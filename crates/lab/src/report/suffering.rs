//! From when on a flow or a host is said to suffer.

/// How many times slower than without the hot flows a flow suffers: it gets less than 80 % of what
/// it gets alone, or of what its host offers where it was not run alone. Of the demo's flows that
/// nothing holds back, message boundaries alone make some 9 % slower, so that a tenth says nothing;
/// those that share a buffer with hot flows lose more than half.
pub(super) const SUFFERS_FROM: f64 = 1.25;
