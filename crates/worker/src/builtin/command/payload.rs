//! What a job says about the program to run.

use crate::builtin::fields::{Fields, ROOT};
use orchestrator_core::{FieldError, Json, Millis};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A checked payload.
#[derive(Debug)]
pub(super) struct Program {
    pub run: Vec<String>,
    pub input: Option<Json>,
    pub stdin: Option<Json>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
    pub timeout: Option<Millis>,
    pub exit: ExitCodes,
    pub parse: Parse,
}

/// What the program's output is.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Parse {
    /// One JSON document: the result itself.
    #[default]
    Json,
    /// Anything: the result holds it as a text.
    Text,
}

/// What exit codes mean; one that stands nowhere is a final failure.
#[derive(Debug)]
pub(super) struct ExitCodes {
    pub done: Vec<i32>,
    pub skipped: Vec<i32>,
    pub retryable: Vec<i32>,
}

impl Default for ExitCodes {
    fn default() -> Self {
        // 75 is EX_TEMPFAIL of sysexits.h: "try again later".
        ExitCodes { done: vec![0], skipped: vec![3], retryable: vec![75] }
    }
}

impl Program {
    pub fn parse(payload: &Json) -> Result<Program, Vec<FieldError>> {
        let mut fields = Fields::open(ROOT, payload);
        let run = fields.required::<Vec<String>>("run");
        if let Some(run) = &run {
            if run.first().is_none_or(String::is_empty) {
                fields.problem("run", "must start with the program to run");
            }
            if run.iter().any(|word| word.contains('\0')) {
                fields.problem("run", "must not contain NUL characters");
            }
        }
        let (input, stdin) = (fields.raw("input"), fields.raw("stdin"));
        if input.is_some() && stdin.is_some() {
            fields.problem(
                "stdin",
                "replaces all that the program reads, so `input` would be lost: give one of them",
            );
        }
        let env = fields.optional::<BTreeMap<String, String>>("env").unwrap_or_default();
        for (name, value) in &env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                fields.problem("env", format!("{name:?} cannot be set"));
            }
        }
        let cwd = fields.optional::<String>("cwd");
        if cwd.as_ref().is_some_and(|path| path.is_empty() || path.contains('\0')) {
            fields.problem("cwd", "must be the path of a directory");
        }
        let timeout = fields.optional::<Millis>("timeout");
        if timeout == Some(Millis(0)) {
            fields.problem("timeout", "must be longer than zero");
        }
        let exit = exit_codes(&mut fields);
        let parse = fields.optional("parse").unwrap_or_default();
        let cwd = cwd.map(PathBuf::from);
        fields.finish(run.map(|run| Program { run, input, stdin, env, cwd, timeout, exit, parse }))
    }

    /// The program, for messages.
    pub fn name(&self) -> &str {
        &self.run[0]
    }
}

fn exit_codes(fields: &mut Fields) -> ExitCodes {
    let Some(given) = fields.raw("exit").filter(|json| json.as_str() != "null") else {
        return ExitCodes::default();
    };
    let mut inner = Fields::open(&fields.path("exit"), &given);
    let usual = ExitCodes::default();
    let mut list = |name, usual| {
        let codes: Vec<i32> = inner.optional(name).unwrap_or(usual);
        if codes.iter().any(|code| !(0..=255).contains(code)) {
            inner.problem(name, "exit codes go from 0 to 255");
        }
        codes
    };
    let codes = ExitCodes {
        done: list("done", usual.done),
        skipped: list("skipped", usual.skipped),
        retryable: list("retryable", usual.retryable),
    };
    let mut all: Vec<_> = [&codes.done, &codes.skipped, &codes.retryable].into_iter().flatten().collect();
    all.sort();
    if let Some(twice) = all.windows(2).find(|pair| pair[0] == pair[1]) {
        let problem = format!("{} has two meanings", twice[0]);
        fields.problem("exit", problem);
    }
    inner.finish(Some(codes)).unwrap_or_else(|errors| {
        fields.extend(errors);
        ExitCodes::default()
    })
}
