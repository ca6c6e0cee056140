//! Puts the layers together.

use super::problem::{self, Origin, Problem, near};
use super::settings::{self, SETTINGS, Setting};
use super::{Config, DEFAULT_FILE, file};
use orchestrator_core::LimitKey;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

const PREFIX: &str = "ORCHESTRATOR_";

/// A setting given by a flag.
#[derive(Clone, Debug)]
pub struct Flag {
    /// The setting's key.
    pub key: &'static str,
    /// The flag, as it is written.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

/// Where settings come from, besides the defaults.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A file that must exist; else [`DEFAULT_FILE`] is read where it does.
    pub file: Option<PathBuf>,
    /// The environment.
    pub env: Vec<(String, String)>,
    /// Flags of the command line.
    pub flags: Vec<Flag>,
}

impl Sources {
    /// The environment of this process.
    pub fn environment() -> Vec<(String, String)> {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
    }
}

/// A configuration and how it came about.
#[derive(Debug)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// Each setting of [`SETTINGS`], in order: its value as it is shown, and where it came from.
    pub effective: Vec<(&'static Setting, String, Origin)>,
    /// Where each rule of `[limits]` came from.
    pub limit_origins: BTreeMap<LimitKey, Origin>,
    /// Things that look wrong but stop nothing.
    pub warnings: Vec<Problem>,
}

impl Loaded {
    /// Whether nobody has set a setting.
    pub fn is_default(&self, key: &str) -> bool {
        self.effective.iter().any(|(setting, _, origin)| setting.key == key && *origin == Origin::Default)
    }
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.key)
    }
}

/// Loads and checks all layers. An error holds everything that is wrong.
pub fn load(sources: &Sources) -> Result<Loaded, Vec<Problem>> {
    let path = sources.file.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound && sources.file.is_none() => Ok(String::new()),
        text => text,
    };
    layered(&path.display().to_string(), text, sources)
}

/// The same with the text of the file at hand; `name` is what places call it.
pub fn layered(name: &str, text: io::Result<String>, sources: &Sources) -> Result<Loaded, Vec<Problem>> {
    let mut layers = Layers { config: Config::default(), effective: BTreeMap::new(), problems: vec![] };
    for setting in SETTINGS {
        layers.set(setting, setting.default, Origin::Default);
    }
    let limit_origins = layers.file(name, text);
    let warnings = layers.environment(&sources.env);
    for flag in &sources.flags {
        if let Some(setting) = settings::find(flag.key) {
            layers.set(setting, &flag.value, Origin::Flag(flag.name));
        }
    }
    layers.check_together();
    if !layers.problems.is_empty() {
        return Err(layers.problems);
    }
    let mut effective = layers.effective;
    let effective = SETTINGS
        .iter()
        .filter_map(|setting| effective.remove(setting.key).map(|(shown, origin)| (setting, shown, origin)))
        .collect();
    Ok(Loaded { config: layers.config, effective, limit_origins, warnings })
}

struct Layers {
    config: Config,
    effective: BTreeMap<&'static str, (String, Origin)>,
    problems: Vec<Problem>,
}

impl Layers {
    fn set(&mut self, setting: &'static Setting, text: &str, origin: Origin) {
        match (setting.set)(&mut self.config, text) {
            Ok(shown) => {
                self.effective.insert(setting.key, (shown, origin));
            }
            Err(message) => self.problems.push(Problem::new(&origin, setting.key, text, message)),
        }
    }

    fn file(&mut self, name: &str, text: io::Result<String>) -> BTreeMap<LimitKey, Origin> {
        let source = match text {
            Ok(source) => source,
            Err(error) => {
                let origin = Origin::File { path: name.to_owned(), line: 1 };
                self.problems.push(Problem::at_place(&origin, format!("cannot be read: {error}")));
                return BTreeMap::new();
            }
        };
        let values = file::read(name, &source, &mut self.problems);
        for (setting, text, origin) in values.settings {
            self.set(setting, &text, origin);
        }
        problem::sort(&mut self.problems);
        let mut origins = BTreeMap::new();
        for (key, rule, origin) in values.limits {
            self.config.limits.insert(key.clone(), rule);
            origins.insert(key, origin);
        }
        origins
    }

    /// Reads the environment; answers with names that look like a misspelt setting. Those are no
    /// errors: other programs may own names with our prefix (Kubernetes makes some for a service).
    fn environment(&mut self, env: &[(String, String)]) -> Vec<Problem> {
        let mut set: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
        let mut warnings = vec![];
        for (name, value) in env.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
            let origin = Origin::Env(name.clone());
            let Some(setting) = settings::find_env(name) else {
                let known = SETTINGS
                    .iter()
                    .flat_map(|setting| setting.env)
                    .filter_map(|name| name.strip_prefix(PREFIX));
                let own = &name[PREFIX.len()..];
                if let Some(meant) = near(own, known).filter(|meant| strsim::levenshtein(own, meant) <= 2) {
                    let message = format!("unknown; did you mean {PREFIX}{meant}?");
                    warnings.push(Problem::new(&origin, name, value, message));
                }
                continue;
            };
            match set.insert(setting.key, (name, value)) {
                Some((other, earlier)) if earlier != value => {
                    let message = format!("{other} says {earlier:?}; set only one of them");
                    self.problems.push(Problem::new(&origin, setting.key, value, message));
                }
                _ => self.set(setting, value, origin),
            }
        }
        warnings
    }

    /// What must hold between settings. Blames a setting that somebody set.
    fn check_together(&mut self) {
        let queue = &self.config.queue;
        if queue.heartbeat.0.saturating_mul(2) >= queue.lease_ttl.0 {
            let message = format!(
                "queue.heartbeat ({}) must be shorter than half of queue.lease_ttl ({})",
                queue.heartbeat, queue.lease_ttl
            );
            self.blame(["queue.heartbeat", "queue.lease_ttl"], &message);
        }
        if self.config.retry.initial > self.config.retry.max {
            let retry = &self.config.retry;
            let message = format!(
                "retry.initial ({}) must not be longer than retry.max ({})",
                retry.initial, retry.max
            );
            self.blame(["retry.initial", "retry.max"], &message);
        }
    }

    fn blame(&mut self, keys: [&'static str; 2], message: &str) {
        // A setting whose own value is wrong already has its problem, and kept its default here.
        let culprit = keys.into_iter().find_map(|key| {
            let (shown, origin) = self.effective.get(key)?;
            (*origin != Origin::Default).then(|| Problem::new(origin, key, shown, message))
        });
        self.problems.extend(culprit);
    }
}
