//! Tables, engines, lanes and checks.

mod adaptive;
mod checks;
mod fat_tree;
mod formats;
mod lanes;
mod large_files;
mod multipath;
mod policies;
mod properties;
mod shared_fabrics;
mod topologies;
