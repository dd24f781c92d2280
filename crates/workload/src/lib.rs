//! Placeholder of the plan.
