//! The engine and the worker pool together, on the model store and in virtual time.

mod faults;
mod flows;
mod intake;
mod leases;
mod prefetch;
mod progress;
mod retention;
mod running;
mod shutdown;
mod stopping;
mod waiting;
mod world;
