//! `download`: fetches a file from the first of several sources that has it.
//!
//! ```json
//! {"sources": [{"resolver": "unpaywall", "url": "https://example.org/a.pdf"}, {"url": "https://mirror.example/a"}],
//!  "to": "papers/a.pdf", "sha256": "ba7816bf...", "max_size": "100MB"}
//! ```
//!
//! Only `sources` (1 to 32) is required. `to` is a path under the download directory, or an absolute
//! one; without it the name comes from the job's key or the first URL.
//!
//! **One source per lease.** A source is asked under `resolver:<name>` and `host:<host>`, beside the
//! job's limits of other kinds. A lease that does not hold those keys goes back as
//! [`Outcome::Continue`] with them, and so does one whose source failed while another is left: a
//! slot is always a lease's slot, so the limits hold across processes and end with their holder. A
//! redirect to another host is a leg of its own for the same reason.
//!
//! **Rounds.** When all sources have failed the task fails: retryably if any source may do better
//! later, and not before the first of these may be asked again. The next attempt begins a new round
//! at the first source; one that asked for more patience than has passed is left out of it. What
//! happened so far is in the checkpoint, a [`Trail`].
//!
//! **Files.** Bytes go to a part file beside the target, are counted and hashed on the way, synced
//! and renamed: the target is never seen half written. A part file goes with its attempt, and those
//! of attempts that were killed go with the next. A target that is there already is skipped.

mod fetch;
mod payload;
mod target;
mod trail;

use super::BuiltinConfig;
use super::client::{LazyClient, shown, web_url};
use super::fields::refused;
use super::host::host_of;
use crate::handler::{Handler, Work};
use async_trait::async_trait;
use fetch::{Answer, Order, Trouble};
use orchestrator_core::outcome::Leg;
use orchestrator_core::{BadLimit, ErrorClass, Failure, FieldError, Json, LimitKey, Limits, Millis, Outcome};
use orchestrator_store::clock::Clock;
use payload::{Download, Source};
use reqwest::Url;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use target::Target;
use trail::Trail;

/// How often one source may send us on.
const MAX_HOPS: u32 = 10;

pub(super) struct Downloader {
    client: LazyClient,
    dir: PathBuf,
    max_download: u64,
    clock: Arc<dyn Clock>,
}

/// What came of asking a source.
enum Asked {
    /// It gave the file.
    Stored { bytes: u64, sha256: String },
    /// It has to be asked under these limits, which the lease does not hold.
    Under(Limits),
}

/// The limits under which a `download` payload starts. A job that is submitted with them saves the
/// leg that would only ask for them. `None` if the payload is wrong.
pub fn first_limits(payload: &Json) -> Option<Limits> {
    let download = Download::parse(payload).ok()?;
    let source = download.sources.first()?;
    limits(source, &source.url, &Limits::none()).ok()
}

/// The keys that asking `url` for a source needs, beside those of other kinds that the job has.
fn limits(source: &Source, url: &Url, held: &Limits) -> Result<Limits, Failure> {
    let refused = |problem: &dyn std::fmt::Display| Failure::new(ErrorClass::Validation, problem.to_string());
    let host = host_of(url).ok_or_else(|| refused(&"a URL without a host"))?;
    let mut keys = vec![LimitKey::new("host", &host).map_err(|error| refused(&error))?];
    if let Some(resolver) = &source.resolver {
        keys.push(LimitKey::new("resolver", resolver).map_err(|error| refused(&error))?);
    }
    keys.extend(held.keys().iter().filter(|key| !matches!(key.kind(), "host" | "resolver")).cloned());
    Limits::new(keys).map_err(|error| refused(&error))
}

impl Downloader {
    pub fn new(config: &BuiltinConfig) -> Self {
        Downloader {
            // Redirects are followed here, under the limits of where they lead.
            client: LazyClient::new(config, 0).with_idle_timeout(config.idle_timeout),
            dir: config.download_dir.clone(),
            max_download: config.max_download,
            clock: config.clock.clone(),
        }
    }

    async fn leg(&self, work: &Work) -> Result<Outcome, Failure> {
        let leased = &work.leased;
        let download = Download::parse(&leased.payload).map_err(refused)?;
        let target = Target::new(&self.dir, &download, leased);
        if target.is_there(download.sha256.as_deref()).await? {
            let path = target.path().to_string_lossy();
            return Ok(Outcome::Skipped(json!({ "path": path, "reason": "already there" }).into()));
        }
        let mut trail = Trail::resume(leased.checkpoint.as_ref(), leased.counters.failures);
        trail.pass_waiting(self.clock.now(), download.sources.len());
        let Some(source) = download.sources.get(trail.source) else {
            return Err(trail.verdict(self.clock.now()));
        };
        match self.ask(source, &mut trail, &download, &target, &leased.limits).await {
            Ok(Asked::Stored { bytes, sha256 }) => Ok(Outcome::Completed(
                json!({
                    "path": target.path().to_string_lossy(),
                    "bytes": bytes,
                    "sha256": sha256,
                    "source": trail.source,
                    "url": source.url.as_str(),
                    "resolver": source.resolver,
                })
                .into(),
            )),
            Ok(Asked::Under(needed)) => next_leg(&trail, needed),
            Err(Trouble::Source(failure)) => self.source_failed(trail, failure, &download, &leased.limits),
            // Another source would not help against a full disk.
            Err(Trouble::Here(failure)) => Err(failure),
        }
    }

    /// Asks a source, and goes where it sends us as far as the lease's limits reach.
    async fn ask(
        &self,
        source: &Source,
        trail: &mut Trail,
        download: &Download,
        target: &Target,
        held: &Limits,
    ) -> Result<Asked, Trouble> {
        let mut url = match &trail.hop {
            Some(hop) => web_url(&hop.url).unwrap_or_else(|_| source.url.clone()),
            None => source.url.clone(),
        };
        let order = Order {
            target,
            max_size: download.max_size.unwrap_or(self.max_download),
            sha256: download.sha256.as_deref(),
            clock: &*self.clock,
        };
        loop {
            let needed = limits(source, &url, held).map_err(Trouble::Source)?;
            if !held.covers(&needed) {
                return Ok(Asked::Under(needed));
            }
            let client = self.client.get().map_err(Trouble::Here)?;
            match order.fetch(client, &url).await.map_err(|trouble| trouble.about(&shown(&url)))? {
                Answer::Stored { bytes, sha256 } => return Ok(Asked::Stored { bytes, sha256 }),
                Answer::Elsewhere(_) if trail.hops() >= MAX_HOPS => {
                    let failure = Failure::permanent(format!("sent on more than {MAX_HOPS} times"));
                    return Err(Trouble::Source(failure).about(&shown(&url)));
                }
                Answer::Elsewhere(next) => {
                    trail.send_on(&next);
                    url = next;
                }
            }
        }
    }

    /// Goes on to the next source, or fails the attempt when there is none.
    fn source_failed(
        &self,
        mut trail: Trail,
        failure: Failure,
        download: &Download,
        held: &Limits,
    ) -> Result<Outcome, Failure> {
        let now = self.clock.now();
        trail.failed(failure, now);
        trail.pass_waiting(now, download.sources.len());
        match download.sources.get(trail.source) {
            Some(next) => {
                // Keys that cannot be made fail that source when its turn comes, under what we hold.
                let needed = limits(next, &next.url, held).unwrap_or_else(|_| held.clone());
                next_leg(&trail, needed)
            }
            // A failed attempt keeps no checkpoint, so a wish that outlasts the wait before the next
            // round is written down first.
            None if trail.outlasts_its_verdict(now) => next_leg(&trail, held.clone()),
            None => Err(trail.verdict(now)),
        }
    }
}

fn next_leg(trail: &Trail, limits: Limits) -> Result<Outcome, Failure> {
    let checkpoint = Json::of(trail)
        .map_err(|error| Failure::new(ErrorClass::Defect, format!("cannot write the checkpoint: {error}")))?;
    Ok(Outcome::Continue(Leg { checkpoint, limits, delay: Millis(0) }))
}

#[async_trait]
impl Handler for Downloader {
    async fn run(&self, work: Work) -> Outcome {
        match work.cancelled.run_until_cancelled(self.leg(&work)).await {
            Some(outcome) => outcome.unwrap_or_else(Outcome::Failed),
            None => Outcome::Released,
        }
    }

    fn check(&self, payload: &Json) -> Vec<FieldError> {
        Download::parse(payload).err().unwrap_or_default()
    }

    /// A download starts under the limits of its first source.
    fn limits(&self, payload: &Json, named: Limits) -> Result<Limits, BadLimit> {
        let Some(first) = first_limits(payload) else { return Ok(named) };
        let others = named.keys().iter().filter(|key| !matches!(key.kind(), "host" | "resolver"));
        Limits::new(others.chain(first.keys()).cloned())
    }
}
