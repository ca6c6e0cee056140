//! The `orchestrator` program: reads the command line, runs one command, ends with its exit code.
//!
//! It is a library only so that what it reads from outside can be fuzzed; nothing else is meant to use it.

mod bench;
mod cli;
mod commands;
mod config;
mod database;
mod descriptors;
mod error;
mod exit;
mod flow;
#[doc(hidden)]
pub mod fuzzing;
mod intake;
mod jobs;
mod live;
mod log;
mod output;
mod reload;
mod service;
mod session;
mod signals;
mod telemetry;
mod workers;

use clap::Parser;
use cli::{Cli, Command};
use error::{CliError, CliResult};
use exit::Exit;
use output::{Color, Format, Output};
use std::process::ExitCode;

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let out = cli.globals.output();
    match run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            out.error(&error);
            error.exit.into()
        }
    }
}

fn run(cli: Cli) -> CliResult {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::new(Exit::Error, "io", format!("cannot start threads: {error}")))?;
    let globals = cli.globals;
    if let (Some(_), Some(why)) = (&globals.server, cli.command.without_server()) {
        return Err(CliError::usage(format!("--server makes no sense here: {why}")));
    }
    let result = runtime.block_on(async {
        let result = match cli.command {
            Command::Run(args) => commands::run::run(*args, &globals).await,
            Command::Flows(command) => commands::flows::run(command, &globals).await,
            Command::Jobs(command) => commands::jobs::run(command, &globals).await,
            Command::Tasks(command) => commands::tasks::run(command, &globals).await,
            Command::DeadLetter(command) => commands::dead_letter::run(command, &globals).await,
            Command::Queue(command) => commands::queue::run(command, &globals).await,
            Command::Serve(args) => commands::serve::run(args, &globals).await,
            Command::Dev(args) => commands::dev::run(args, &globals).await,
            Command::Workers(command) => commands::workers::run(command, &globals).await,
            Command::Worker(args) => commands::worker::run(args, &globals).await,
            Command::Limits(command) => commands::limits::run(command, &globals).await,
            Command::Migrate(command) => commands::migrate::run(command, &globals).await,
            Command::Config(command) => commands::config::run(command, &globals),
            Command::Demo(args) => commands::demo::run(args, &globals).await,
            Command::Bench(args) => bench::run(args, &globals).await,
            Command::Completions(args) => commands::completions::run(&args, &globals),
        };
        telemetry::finish().await;
        result
    });
    // A thread may still wait for a line of stdin that never comes.
    runtime.shutdown_background();
    result
}

/// Shows what clap has to say: help and version on stdout, mistakes on stderr.
fn usage(error: &clap::Error) -> ExitCode {
    // Nobody may be reading; there is nowhere else to say it.
    let _ = error.print();
    if !error.use_stderr() {
        return Exit::Ok.into();
    }
    if std::env::args_os().any(|arg| arg == "--json") {
        let text = error.to_string();
        let what = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        Output::new(Format::Jsonl, Color::Never, false).json_error(&CliError::usage(what));
    }
    Exit::Usage.into()
}
