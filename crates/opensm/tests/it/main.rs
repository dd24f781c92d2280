//! The routing engine of OpenSM on random fabrics and files.

mod properties;
