//! `orchestrator completions SHELL`

use crate::cli::{Cli, Globals};
use crate::error::CliResult;
use crate::exit::Exit;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator completions bash > ~/.local/share/bash-completion/completions/orchestrator
  orchestrator completions zsh > ~/.zfunc/_orchestrator")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Writes the script.
pub fn run(args: &CompletionsArgs, globals: &Globals) -> CliResult {
    // Into memory first: the generator panics when its writer fails, as a closed pipe does.
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut Cli::command(), "orchestrator", &mut script);
    globals.output().data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
