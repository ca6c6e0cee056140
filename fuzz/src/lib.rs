//! What must hold for every input of the fuzz targets.
//!
//! Ordinary tests include these files to replay the corpus, so they use nothing of libFuzzer. What the
//! targets `jsonl` and `config` check stands in the program itself, whose parts it needs.

pub mod flow;
pub mod stack;
pub mod template;
