//! Fabrics: builders, files, structure.

mod large_files;
mod readers;
mod shared_files;
mod structure;
mod topologies;
