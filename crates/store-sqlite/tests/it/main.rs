//! What is particular to the embedded store: its query plans, several processes on one file, killed
//! processes, and everything that can be wrong with a file or a disk.

mod crash;
mod disk;
mod faults;
mod forget;
mod held;
mod keys;
mod plans;
mod processes;
mod support;
