//! What every storm has: a directory, a configuration, the service that the jobs call, and a history.

use crate::heal::LOOK;
use crate::load::{self, Load};
use crate::operator::{Known, Operator};
use crate::postgres::Postgres;
use crate::record::Record;
use crate::report::Report;
use crate::submitter::Submitter;
use crate::tools::{Tools, Worker, find_binary};
use crate::watch::{self as counting, Counts};
use crate::{Failure, Options, hand, last, out, server};
use orchestrator_history::{Finding, Kind, Rules, check};
use rustix::process::Signal;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A worker that was asked to end has ended long before.
const END: Duration = Duration::from_secs(30);

/// What a storm sets.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the storm.
    pub name: &'static str,
    /// How long a lease holds.
    pub lease_ttl: Duration,
    /// How long workers may take to stop.
    pub grace: Duration,
    /// The store, where none is given: beside the rest, unless it stands here.
    pub db: Option<String>,
}

type Background = JoinHandle<Result<(), Failure>>;

/// A storm at work.
pub struct World {
    /// The options in force.
    pub options: Options,
    /// How to start the binary.
    pub tools: Tools,
    /// The history.
    pub record: Record,
    /// The jobs that were taken in.
    pub known: Known,
    /// What is submitted.
    pub load: Load,
    /// What is live.
    pub counts: watch::Receiver<Counts>,
    counting: Background,
    operating: Option<(watch::Sender<bool>, Background)>,
    name: &'static str,
    hands: PathBuf,
    dir: TempDir,
    /// The servers that everything works through.
    servers: Vec<Worker>,
    /// The database server that was started for this storm; it ends with it.
    _server: Option<Postgres>,
    started: Instant,
}

impl World {
    /// Makes the directory, applies the flows and starts the service.
    pub async fn start(options: &Options, settings: &Settings) -> Result<World, Failure> {
        let me = std::env::current_exe()?;
        let bin = find_binary(options.bin.clone(), &me)?;
        let dir = tempfile::Builder::new().prefix("storm-").tempdir()?;
        let path = dir.path().to_owned();
        if !options.keep {
            crate::leftovers::note(&path);
        }
        let mut given = options.db.clone().or_else(|| settings.db.clone());
        let mut server = None;
        if given.is_none() && options.postgres {
            let launched = server.insert(Postgres::launch().await?);
            given = Some(launched.with(pg_harness::Server::database).await?);
        }
        let db = match given {
            // The binary is started in another directory.
            Some(file) if !file.contains("://") => std::path::absolute(file)?.display().to_string(),
            Some(url) => url,
            None => path.join("storm.db").display().to_string(),
        };
        let urls = (0..options.servers).map(|_| free_address()).collect::<Result<_, _>>()?;
        let config_file = path.join("storm.toml");
        let tools = Tools { bin, me: me.clone(), db, servers: urls, config: config_file, dir: path.clone() };
        std::fs::write(&tools.config, config(settings))?;
        let servers = (0..options.servers).map(|number| tools.serve(number)).collect::<Result<_, _>>()?;
        tools.until_served().await?;
        for (name, flow) in load::flows() {
            let file = path.join(format!("{name}.json"));
            std::fs::write(&file, flow.to_string())?;
            tools.must(&["flows", "apply", &file.display().to_string()]).await?;
        }
        let record = Record::default();
        let url = server::start(options.seed, record.clone()).await?;
        let hands = path.join("hands.jsonl");
        let load = Load::new(options.seed, url, me, hands.clone());
        let (told, counts) = watch::channel(Counts::default());
        let counting = tokio::spawn(counting::keep_counting(tools.clone(), told));
        out::note(format!(
            "storm {}: {} jobs, {} workers{}, seed {}, {}",
            settings.name,
            options.jobs,
            options.workers,
            if options.servers > 0 { format!(" through {} servers", options.servers) } else { String::new() },
            options.seed,
            tools.db
        ));
        Ok(World {
            options: options.clone(),
            tools,
            record,
            known: Known::default(),
            load,
            counts,
            counting,
            operating: None,
            name: settings.name,
            hands,
            dir,
            servers,
            _server: server,
            started: Instant::now(),
        })
    }

    /// Starts the workers.
    pub fn workers(&self) -> Result<Vec<Worker>, Failure> {
        (0..self.options.workers).map(|number| self.tools.worker(number)).collect()
    }

    /// The servers, for who breaks them; to be given back.
    pub fn take_servers(&mut self) -> Vec<Worker> {
        std::mem::take(&mut self.servers)
    }

    /// Gives the servers back.
    pub fn put_servers(&mut self, servers: Vec<Worker>) {
        self.servers = servers;
    }

    /// The client that submits.
    pub fn submitter(&self) -> Submitter {
        Submitter::new(self.tools.clone(), self.record.clone())
    }

    /// Submits a little more until something is through: nobody could see else that work goes on.
    pub async fn feed_on<T>(
        &mut self,
        submitter: &mut Submitter,
        until: &JoinHandle<T>,
    ) -> Result<(), Failure> {
        while !until.is_finished() {
            let batch = submitter.submit(vec![self.load.next()], None).await?;
            batch.acked.iter().for_each(|(job, work)| self.known.add(*job, work.limited));
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Lets somebody look at jobs and steer them until the end.
    pub fn operate(&mut self) {
        let operator = Operator {
            tools: self.tools.clone(),
            record: self.record.clone(),
            known: self.known.clone(),
            rng: fastrand::Rng::with_seed(self.options.seed ^ 0x0b5e),
            every: self.options.look_every,
        };
        let (stop, stopped) = watch::channel(false);
        self.operating = Some((stop, tokio::spawn(operator.run(stopped))));
    }

    /// Lets everything come to its end, reads it once more and judges.
    pub async fn finish(mut self, mut workers: Vec<Worker>, ending: Ending) -> Result<Report, Failure> {
        if let Some((stop, operating)) = self.operating.take() {
            stop.send_replace(true);
            operating.await??;
        }
        out::note("  calm: everything may end");
        let drained = counting::drain(self.counts.clone()).await;
        let mut findings = ending.findings;
        findings.extend(end("worker", &mut workers).await?);
        let stormed = self.started.elapsed();
        self.counting.abort();
        let jobs = last::read(&self.tools).await?;
        findings.extend(end("server", &mut self.servers).await?);
        let word = last::word(&jobs);
        let history = self.record.finish(hand::read(&self.hands)?);
        let mut verdict = check(&history, &word, &ending.rules);
        verdict.findings.extend(last::check_inputs(&jobs));
        if ending.rules.no_crashes {
            verdict.findings.extend(last::check_failures(&jobs, &self.record));
        }
        verdict.findings.extend(findings);
        verdict.findings.sort();
        let mut report = Report {
            name: self.name,
            verdict,
            figures: self.record.figures(),
            faults: ending.faults,
            notes: ending.notes,
            stale_writes: last::stale_writes(&jobs),
            drained,
            stormed,
            kept: None,
        };
        report.tell(&word);
        if self.options.keep || !report.is_clean() {
            let path = self.dir.path().to_owned();
            report.keep(&path, &history, &word)?;
            self.dir.disable_cleanup(true);
            out::note(format!("  kept: {}", path.display()));
            report.kept = Some(path);
        }
        Ok(report)
    }
}

/// An address of this machine that nobody has.
fn free_address() -> std::io::Result<String> {
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    Ok(format!("http://{address}"))
}

/// Ends workers or servers in order, and tells of those that do not.
async fn end(role: &str, workers: &mut [Worker]) -> Result<Vec<Finding>, Failure> {
    let mut findings = vec![];
    let lived: Vec<bool> = workers.iter_mut().map(Worker::lives).collect();
    for worker in workers.iter() {
        worker.signal(Signal::TERM);
    }
    for (number, (worker, lived)) in workers.iter_mut().zip(lived).enumerate() {
        let code = worker.end_within(END).await?;
        if !lived {
            findings.push(ended_by_itself(role, number));
        } else if code != Some(0) {
            worker.kill().await?;
            let what =
                format!("{role} {number} ended with {code:?} when it was asked to end, with nothing to do");
            findings.push(Finding { kind: Kind::Wrong, what });
        }
    }
    Ok(findings)
}

/// Tells of the workers that do not run any more.
pub fn ended_by_themselves(workers: &mut [Worker]) -> Vec<Finding> {
    let ended =
        workers.iter_mut().enumerate().filter_map(|(number, worker)| (!worker.lives()).then_some(number));
    ended.map(|number| ended_by_itself("worker", number)).collect()
}

/// A worker or a server ends only when it is told to.
pub fn ended_by_itself(role: &str, number: usize) -> Finding {
    Finding {
        kind: Kind::Wrong,
        what: format!("{role} {number} has ended by itself: see {role}-{number}.log"),
    }
}

/// What a storm knows at its end.
#[derive(Default)]
pub struct Ending {
    /// What held beyond what always holds.
    pub rules: Rules,
    /// What was broken, and how often.
    pub faults: Vec<(&'static str, u64)>,
    /// What the storm itself found.
    pub findings: Vec<Finding>,
    /// What else is worth a line.
    pub notes: Vec<String>,
}

fn config(settings: &Settings) -> String {
    let ttl = settings.lease_ttl.as_millis();
    format!(
        "[queue]\nmax_workers = 16\nmax_per_host = {hosts}\nlease_ttl = \"{ttl}ms\"\nheartbeat = \"{beat}ms\"\n\
         grace = \"{grace}ms\"\npoll = \"50ms\"\n\n[retry]\ninitial = \"100ms\"\nmax = \"1s\"\n\n\
         [task]\nmax_crashes = 1000\ntimeout = \"30s\"\n",
        hosts = load::host_caps(),
        beat = ttl / 4,
        grace = settings.grace.as_millis(),
    )
}
