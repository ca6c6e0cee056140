//! Flows: what people define, what runs, and how a job of many tasks moves on.
//!
//! - [`document`] and [`read`]: texts in, with the place of every value, all mistakes at once
//! - [`def`]: the definition as data; [`build`]: the same from Rust
//! - [`plan`]: the definition checked (by `check`) and compiled
//! - [`template`]: inputs and conditions over the job's input and earlier outputs
//! - [`schema`]: what an input must look like
//! - [`run`]: where a job of many tasks stands; [`advance`]: how it moves on
//! - [`progress`]: how far it is, and how long it will take

pub mod advance;
pub mod build;
mod check;
pub mod def;
pub mod document;
pub mod plan;
pub mod progress;
pub mod read;
pub mod run;
pub mod schema;
pub mod template;

pub use build::{Flow, Task};
pub use def::{FlowDef, JoinRule, TaskDef};
pub use document::{Node, Path, Problem};
pub use plan::Plan;
pub use run::Run;
