//! `orchestrator config check|show|schema`

use crate::cli::Globals;
use crate::config::{Problem, problem_lines, render};
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::output::Paint;
use crate::session;
use clap::{Args, Subcommand};
use serde_json::json;

/// `config ...`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check file, environment and flags; tell everything that is wrong at once
    #[command(before_help = "Examples:
  orchestrator config check
  orchestrator config check --config staging.toml --json")]
    Check,
    /// Show the settings in force
    #[command(before_help = "Examples:
  orchestrator config show --origins
  orchestrator config show --default > orchestrator.toml")]
    Show(ShowArgs),
    /// Write a JSON Schema of the file, for editors
    #[command(before_help = "Examples:
  orchestrator config schema
  orchestrator config schema > orchestrator.schema.json")]
    Schema,
}

/// Arguments of `config show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Say where each value came from
    #[arg(long)]
    origins: bool,
    /// Write the default file, with comments, instead
    #[arg(long, conflicts_with = "origins")]
    default: bool,
}

/// Runs a `config` command.
pub fn run(command: ConfigCommand, globals: &Globals) -> CliResult {
    match command {
        ConfigCommand::Check => check(globals),
        ConfigCommand::Show(args) => show(&args, globals),
        ConfigCommand::Schema => {
            globals.output().json(&render::schema())?;
            Ok(Exit::Ok)
        }
    }
}

fn check(globals: &Globals) -> CliResult {
    let out = globals.output();
    let (errors, warnings) = match session::load(globals, vec![])? {
        Ok(loaded) => (vec![], loaded.warnings),
        Err(problems) => (problems, vec![]),
    };
    if out.is_table() {
        let headline = match errors.len() {
            0 => out.paint(Paint::Green, "ok"),
            1 => out.paint(Paint::Red, "1 error"),
            many => out.paint(Paint::Red, &format!("{many} errors")),
        };
        out.line(headline)?;
        list(&errors, |line| out.line(line))?;
        if !warnings.is_empty() {
            out.note(format!(
                "{} not understood:",
                if warnings.len() == 1 { "1 variable is" } else { "some variables are" }
            ));
            list(&warnings, |line| {
                out.note(line);
                Ok(())
            })?;
        }
    } else {
        out.json(&json!({ "ok": errors.is_empty(), "errors": errors, "warnings": warnings }))?;
    }
    Ok(if errors.is_empty() { Exit::Ok } else { Exit::Error })
}

fn list(problems: &[Problem], write: impl Fn(String) -> CliResult<()>) -> CliResult<()> {
    problem_lines(problems).into_iter().try_for_each(|line| write(format!("  {line}")))
}

fn show(args: &ShowArgs, globals: &Globals) -> CliResult {
    let out = globals.output();
    if args.default {
        out.data(&render::default_file())?;
        return Ok(Exit::Ok);
    }
    let loaded = session::load(globals, vec![])?.map_err(|problems| CliError::config(&problems))?;
    if out.is_table() {
        out.data(&render::effective_file(&loaded, args.origins))?;
    } else {
        match render::effective_json(&loaded, args.origins) {
            serde_json::Value::Array(entries) => out.json_list(&entries)?,
            nested => out.json(&nested)?,
        }
    }
    Ok(Exit::Ok)
}
