//! What the commands about jobs share: how jobs and tasks are named, shown and given an input.

pub mod find;
pub mod input;
pub mod shown;
pub mod submit;
