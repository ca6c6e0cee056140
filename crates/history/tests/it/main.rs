//! The checker against small histories, one rule at a time, and against random ones that an honest system made.

mod calls;
mod ends;
mod honest;
mod limits;
mod mutations;
mod play;
mod reads;
mod runs;
mod scene;
mod submits;
