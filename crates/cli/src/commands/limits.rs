//! `orchestrator limits list|set|clear`: rules of an operator, while others run.

use crate::cli::Globals;
use crate::config::render::json_rule;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::output::columns;
use crate::session::{Missing, Session};
use clap::{Args, Subcommand};
use orchestrator_core::{LimitKey, LimitRule, Rate};
use orchestrator_store::{LimitChange, LimitView, RuleOrigin};
use serde_json::{Value, json};

/// `limits ...`
#[derive(Debug, Subcommand)]
pub enum LimitsCommand {
    /// List rules, and keys that are in use
    #[command(before_help = "Examples:
  orchestrator limits list
  orchestrator limits list --json")]
    List,
    /// Set a rule; it holds at once, for all processes, until it is cleared
    #[command(before_help = "Examples:
  orchestrator limits set host:example.org --concurrency 2 --rate '10/s burst 5'
  orchestrator limits set resolver:unpaywall --concurrency 0    # stop it for now")]
    Set(SetArgs),
    /// Strike a rule, so that the default of its kind applies again
    #[command(before_help = "Examples:
  orchestrator limits clear host:example.org
  orchestrator limits clear resolver:unpaywall --json")]
    Clear(ClearArgs),
}

/// Arguments of `limits set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The key, kind:name; kind:* is the default of a kind
    key: LimitKey,
    /// How many may run at once, or none for no limit; without it, what applies now stays
    #[arg(long, value_name = "N")]
    concurrency: Option<Part<u32>>,
    /// How many may start per span, such as 10/s or '100/1m burst 20', or none; without it, what applies now stays
    #[arg(long, value_name = "RATE")]
    rate: Option<Part<Rate>>,
}

/// Arguments of `limits clear`.
#[derive(Debug, Args)]
pub struct ClearArgs {
    /// The key, kind:name
    key: LimitKey,
}

/// A part of a rule: a value, or none.
#[derive(Clone, Copy, Debug)]
struct Part<T>(Option<T>);

impl<T: std::str::FromStr<Err: std::fmt::Display>> std::str::FromStr for Part<T> {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Part(None)),
            _ => text.parse().map(|value| Part(Some(value))).map_err(|error: T::Err| error.to_string()),
        }
    }
}

/// Runs a `limits` command.
pub async fn run(command: LimitsCommand, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    match command {
        LimitsCommand::List => list(&session).await,
        LimitsCommand::Set(args) => set(&session, args).await,
        LimitsCommand::Clear(args) => clear(&session, args).await,
    }
}

async fn list(session: &Session) -> CliResult {
    let views = session.open(Missing::Fail).await?.limits().await?;
    if session.out.is_table() {
        let rows = views.iter().map(|view| {
            vec![
                view.key.to_string(),
                view.rule.concurrency.map_or_else(dash, |cap| cap.to_string()),
                view.rule.rate.map_or_else(dash, |rate| rate.to_string()),
                view.running.to_string(),
                origin_word(view.origin).to_owned(),
            ]
        });
        let table = columns(&["KEY", "CONCURRENCY", "RATE", "RUNNING", "SET BY"], &[1, 3], rows.collect());
        session.out.data(&table)?;
    } else {
        session.out.json_list(&views.iter().map(as_json).collect::<Vec<_>>())?;
    }
    Ok(Exit::Ok)
}

async fn set(session: &Session, args: SetArgs) -> CliResult {
    if args.concurrency.is_none() && args.rate.is_none() {
        return Err(CliError::usage("nothing to set").hint("give --concurrency N, --rate R, or both"));
    }
    let store = session.open(Missing::Create).await?;
    let views = store.limits().await?;
    let now = applies(&views, &args.key);
    let rule = LimitRule {
        concurrency: args.concurrency.map_or(now.concurrency, |part| part.0),
        rate: args.rate.map_or(now.rate, |part| part.0),
    };
    let change = LimitChange { key: args.key.clone(), rule: Some(rule), origin: RuleOrigin::Operator };
    store.set_limits(vec![change]).await?;
    if session.out.is_table() {
        session.out.line(format!("{}  {}", args.key, describe(&rule)))?;
    } else {
        session.out.json(&with_key(&args.key, &rule))?;
    }
    Ok(Exit::Ok)
}

async fn clear(session: &Session, args: ClearArgs) -> CliResult {
    let store = session.open(Missing::Fail).await?;
    let had_rule = store.limits().await?.iter().any(|view| view.key == args.key && view.origin.is_some());
    if !had_rule {
        return Err(CliError::new(
            Exit::NotFound,
            "not_found",
            format!("{} has no rule of its own", args.key),
        )
        .hint("`orchestrator limits list` shows what there is"));
    }
    store
        .set_limits(vec![LimitChange { key: args.key.clone(), rule: None, origin: RuleOrigin::Operator }])
        .await?;
    let rule = applies(&store.limits().await?, &args.key);
    if session.out.is_table() {
        session.out.line(format!("{}  cleared; now {}", args.key, describe(&rule)))?;
    } else {
        session.out.json(&with_key(&args.key, &rule))?;
    }
    Ok(Exit::Ok)
}

/// The rule that applies to a key: its own, else the default of its kind.
fn applies(views: &[LimitView], key: &LimitKey) -> LimitRule {
    let of = |key: &LimitKey| views.iter().find(|view| view.key == *key).map(|view| view.rule);
    of(key).or_else(|| of(&key.default_key())).unwrap_or_default()
}

fn describe(rule: &LimitRule) -> String {
    match (rule.concurrency, rule.rate) {
        (None, None) => "no limit".to_owned(),
        (Some(cap), None) => format!("{cap} at once"),
        (None, Some(rate)) => rate.to_string(),
        (Some(cap), Some(rate)) => format!("{cap} at once, {rate}"),
    }
}

fn dash() -> String {
    "-".to_owned()
}

fn origin_word(origin: Option<RuleOrigin>) -> &'static str {
    match origin {
        Some(RuleOrigin::Config) => "config",
        Some(RuleOrigin::Operator) => "operator",
        None => "default",
    }
}

fn with_key(key: &LimitKey, rule: &LimitRule) -> Value {
    let mut value = json_rule(rule);
    value["key"] = json!(key);
    value
}

fn as_json(view: &LimitView) -> Value {
    let mut value = with_key(&view.key, &view.rule);
    value["running"] = json!(view.running);
    value["set_by"] = json!(origin_word(view.origin));
    value
}
