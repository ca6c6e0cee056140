//! `orchestrator queue retry-failed`: empties the dead letters back into their queues.

use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::output::{columns, count};
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_core::DeadReason;
use orchestrator_store::{Command, Controlled, DeadLetter, LineFilter, Store};
use serde_json::json;

/// Dead letters are read and retried in pages of this length.
const PAGE: u32 = 500;
/// So many are listed by a dry run.
const LISTED: usize = 20;

/// Arguments of `queue retry-failed`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator queue retry-failed
  orchestrator queue retry-failed --handler download --reason exhausted --dry-run")]
pub struct RetryFailedArgs {
    /// Only of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Only of this handler
    #[arg(long, value_name = "HANDLER")]
    handler: Option<String>,
    /// Only those that failed for this reason: exhausted (no retries left), final (an error that
    /// will not pass) or poison (their workers vanished)
    #[arg(long, value_name = "REASON", value_parser = reason)]
    reason: Option<DeadReason>,
    /// At most so many
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Only say which
    #[arg(long)]
    dry_run: bool,
}

fn reason(word: &str) -> Result<DeadReason, String> {
    DeadReason::from_word(word).ok_or_else(|| "it is exhausted, final or poison".to_owned())
}

#[derive(Default)]
struct Tally {
    retried: u64,
    superseded: u64,
    gone: u64,
    listed: Vec<DeadLetter>,
}

impl Tally {
    fn chosen(&self) -> u64 {
        self.retried + self.superseded + self.gone
    }
}

/// Retries what the arguments choose.
pub async fn run(args: RetryFailedArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let filter = LineFilter {
        queue: args.queue.as_deref().map(Into::into),
        handler: args.handler.as_deref().map(Into::into),
    };
    let mut tally = Tally::default();
    let mut after = None;
    loop {
        let letters = store.dead_letters(filter.clone(), after, PAGE).await?;
        let Some(last) = letters.last() else { break };
        after = Some(last.task);
        let left = args.limit.map_or(u64::MAX, |limit| limit - tally.chosen());
        let chosen =
            letters.into_iter().filter(|letter| args.reason.is_none_or(|reason| letter.reason == reason));
        let chosen: Vec<_> = chosen.take(usize::try_from(left).unwrap_or(usize::MAX)).collect();
        if args.dry_run {
            tally.retried += chosen.len() as u64;
            let room = LISTED - tally.listed.len();
            tally.listed.extend(chosen.into_iter().take(room));
        } else {
            retry(&*store, &chosen, &mut tally).await?;
        }
        if args.limit.is_some_and(|limit| tally.chosen() >= limit) {
            break;
        }
    }
    store.close().await;
    tell(&session, &args, &tally)
}

async fn retry(store: &dyn Store, letters: &[DeadLetter], tally: &mut Tally) -> CliResult<()> {
    // What failed in one job is taken up together.
    let mut commands: Vec<_> = letters.iter().map(|letter| Command::Retry(letter.task.job)).collect();
    commands.dedup();
    if commands.is_empty() {
        return Ok(());
    }
    for answer in store.control(commands.into_iter().map(Into::into).collect()).await.map_err(|error| {
        CliError::from(error)
            .and_hint(&format!("{} were retried before; run it again for the rest", tally.retried))
    })? {
        match answer {
            Controlled::Done(_) => tally.retried += 1,
            Controlled::Superseded(_) => tally.superseded += 1,
            // Somebody else retried or removed it in this moment.
            Controlled::Refused(_)
            | Controlled::Changed(_)
            | Controlled::NotFound
            | Controlled::NoSuchTask
            | Controlled::NoRecovery(_) => tally.gone += 1,
        }
    }
    Ok(())
}

fn tell(session: &Session, args: &RetryFailedArgs, tally: &Tally) -> CliResult {
    if !session.out.is_table() {
        let mut value = json!({ "retried": tally.retried, "superseded": tally.superseded, "gone": tally.gone, "dry_run": args.dry_run });
        if args.dry_run {
            value["jobs"] = json!(tally.listed);
        }
        session.out.json(&value)?;
        return Ok(Exit::Ok);
    }
    if args.dry_run {
        let rows = tally.listed.iter().map(|letter| {
            let key = letter.key.as_deref().unwrap_or("-");
            [key, &*letter.handler, letter.reason.as_str(), letter.message.lines().next().unwrap_or_default()]
                .map(str::to_owned)
                .to_vec()
        });
        if !tally.listed.is_empty() {
            session.out.data(&columns(
                &["ARTIFACT", "HANDLER", "REASON", "LAST ERROR"],
                &[],
                rows.collect(),
            ))?;
        }
        session.out.line(format!("would retry {}", count(tally.retried)))?;
        return Ok(Exit::Ok);
    }
    let mut text = format!("retried {}", count(tally.retried));
    if tally.superseded > 0 {
        text += &format!(" · superseded {} (their artifact id has a newer job)", count(tally.superseded));
    }
    if tally.gone > 0 {
        text += &format!(" · gone {} (somebody else was first)", count(tally.gone));
    }
    session.out.line(text)?;
    Ok(Exit::Ok)
}
