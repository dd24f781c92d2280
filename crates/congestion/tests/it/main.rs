//! Mechanisms of the registry, and the policy files of adapters.

mod policy_file;
mod properties;
mod registry;
