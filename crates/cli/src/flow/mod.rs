//! Flows as the command line meets them: in files and in the registry, checked, and drawn.

pub mod current;
pub mod graph;
pub mod lanes;
pub mod source;
