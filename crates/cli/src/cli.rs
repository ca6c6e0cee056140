//! The command line: what there is and how it reads. What a command does is in `commands`.

use crate::bench::BenchArgs;
use crate::commands::{
    completions, config, dead_letter, demo, dev, flows, jobs, limits, migrate, queue, run, serve, tasks,
    worker, workers,
};
use crate::config::Flag;
use crate::output::{Color, Format, Output};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Runs work durably: jobs survive crashes, are retried, and respect limits.
#[derive(Debug, Parser)]
#[command(
    name = "orchestrator",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    before_help = "Examples:
  orchestrator demo
  orchestrator run examples/flows/dataset-build.yaml",
    after_help = "Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 5 conflict, 6 the awaited work failed,
7 wait timed out, 8 unreachable, 130 interrupted."
)]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub globals: Globals,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// The database: a file, or postgres://USER@HOST/DATABASE [default: orchestrator.db]
    #[arg(long, global = true, value_name = "PATH|URL")]
    pub db: Option<String>,
    /// A server to work with, instead of a database [env: ORCHESTRATOR_SERVER]
    #[arg(long, global = true, value_name = "URL", conflicts_with = "db")]
    pub server: Option<String>,
    /// The configuration file [default: orchestrator.toml, where there is one]
    #[arg(long, global = true, value_name = "FILE", env = "ORCHESTRATOR_CONFIG")]
    pub config: Option<PathBuf>,
    /// The form of the data on stdout
    #[arg(short, long, global = true, value_parser = names(Format::NAMES), default_value = "table", value_name = "FORMAT")]
    pub output: Format,
    /// Short for -o json
    #[arg(long, global = true, conflicts_with = "output")]
    pub json: bool,
    /// When to use colour; NO_COLOR is honoured
    #[arg(long, global = true, value_parser = names(Color::NAMES), default_value = "auto", value_name = "WHEN")]
    pub color: Color,
    /// Say nothing on stderr but errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Log more: -v info, -vv debug, -vvv trace
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
}

/// Reads one of a few names. A derived `ValueEnum` would spread each name over a line of every help.
fn names<T: Copy + Send + Sync + 'static>(names: [(&'static str, T); 3]) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names.map(|(name, _)| name)).try_map(move |text| {
        names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or("no such name")
    })
}

impl Globals {
    /// Where text goes.
    pub fn output(&self) -> Output {
        Output::new(if self.json { Format::Json } else { self.output }, self.color, self.quiet)
    }

    /// The server to work with: the flag's, or the environment's where no flag says something else.
    pub fn server(&self) -> Option<String> {
        let env = || std::env::var("ORCHESTRATOR_SERVER").ok().filter(|url| !url.trim().is_empty());
        self.server.clone().or_else(|| if self.db.is_none() { env() } else { None })
    }

    /// Settings given by these flags.
    pub fn flags(&self) -> Vec<Flag> {
        self.db.iter().map(|path| Flag { key: "store.db", name: "--db", value: path.clone() }).collect()
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a flow to its end, here and now
    Run(Box<run::RunArgs>),
    /// Check flows, draw them, put them into the registry
    #[command(
        subcommand,
        before_help = "Examples:
  orchestrator flows validate flows/*.yaml
  orchestrator flows graph examples/flows/dataset-build.yaml"
    )]
    Flows(flows::FlowsCommand),
    /// Look at jobs and steer them
    #[command(
        subcommand,
        before_help = "Examples:
  orchestrator jobs list --active
  orchestrator jobs status 019a8f00"
    )]
    Jobs(jobs::JobsCommand),
    /// Look at the tasks of a job
    #[command(
        subcommand,
        before_help = "Examples:
  orchestrator tasks list 019a8f00
  orchestrator tasks show 019a8f00 validate"
    )]
    Tasks(tasks::TasksCommand),
    /// Look at failed tasks, run them again or take them away
    #[command(
        subcommand,
        before_help = "Examples:
  orchestrator dead-letter list
  orchestrator dead-letter requeue --all --handler http"
    )]
    DeadLetter(dead_letter::DeadLetterCommand),
    /// Put single jobs in, run them, count them
    #[command(
        subcommand,
        before_help = "Examples:
  orchestrator queue enqueue --artifact-id doi:10.1/x --handler sleep --payload '{\"for\": \"1s\"}'
  orchestrator queue run --drain"
    )]
    Queue(queue::QueueCommand),
    /// Everything in one process to try it: API, workers and a database that is kept
    Dev(dev::DevArgs),
    /// Serve the API until a signal, as one of any number of replicas
    Serve(serve::ServeArgs),
    /// Run jobs until a signal, as one of any number of replicas
    Worker(worker::WorkerArgs),
    /// See who runs tasks
    #[command(
        subcommand,
        before_help = "Examples:
  orchestrator workers list
  orchestrator workers list --json"
    )]
    Workers(workers::WorkersCommand),
    /// Show and change limits, also while jobs run
    #[command(
        subcommand,
        before_help = "Examples:
  orchestrator limits list
  orchestrator limits set host:example.org --concurrency 2 --rate 10/s"
    )]
    Limits(limits::LimitsCommand),
    /// Look at the schema of the database, and move it to PostgreSQL
    #[command(
        subcommand,
        before_help = "Examples:
  orchestrator migrate status
  orchestrator migrate copy --from orchestrator.db --to postgres://me@host/jobs"
    )]
    Migrate(migrate::MigrateCommand),
    /// Check and show the configuration
    #[command(
        subcommand,
        before_help = "Examples:
  orchestrator config check
  orchestrator config show --origins"
    )]
    Config(config::ConfigCommand),
    /// Run a flow and two dozen real jobs in a scratch directory, and watch them
    Demo(demo::DemoArgs),
    /// Measure queue and flows on this machine
    #[command(before_help = "Examples:
  orchestrator bench queue
  orchestrator bench raw --json")]
    Bench(BenchArgs),
    /// Write the completion script of a shell
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Why it has nothing to do with a server, where it has not.
    pub fn without_server(&self) -> Option<&'static str> {
        match self {
            Command::Dev(_) => Some("dev is a server of its own"),
            Command::Serve(_) => Some("serve is the server: name its database with --db"),
            Command::Migrate(_) => Some("migrate works on a database: name it with --db"),
            Command::Config(_) => Some("config is about the configuration here"),
            Command::Demo(_) => Some("demo has a database of its own"),
            Command::Bench(_) => Some("bench measures this machine"),
            Command::Completions(_) => Some("completions writes a script"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_help_opens_with_two_examples() {
        fn walk(path: &str, command: &clap::Command) {
            let path = format!("{path} {}", command.get_name());
            let before = command.get_before_help().map(ToString::to_string).unwrap_or_default();
            let examples = before
                .lines()
                .filter(|line| line.starts_with("  orchestrator ") || line.contains("| orchestrator "))
                .count();
            assert!(before.starts_with("Examples:") && examples >= 2, "{path}: {before:?}");
            command.get_subcommands().for_each(|sub| walk(&path, sub));
        }
        walk("", &Cli::command());
    }
}
