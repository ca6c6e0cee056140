//! The engine and the worker pool together, on the model store and in virtual time.

mod faults;
mod leases;
mod prefetch;
mod running;
mod shutdown;
mod waiting;
mod world;
