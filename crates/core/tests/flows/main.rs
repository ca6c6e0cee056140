//! Flows from outside: what is refused before it runs, and how jobs of many tasks move on.

mod bad;
mod corpus;
mod each;
mod good;
mod harness;
mod joins;
mod large;
mod random;
mod recover;
mod stop;
mod templates;
