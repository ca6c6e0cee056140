//! One expression: a reference that is followed directly, or one that the engine computes.

use super::engine::{self, Compiled, Failed};
use super::error::{TemplateError, TemplateProblem, excerpt, shown};
use super::reference::Reference;
use super::scan;
use super::scope::Scope;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The most operators in one expression. The engine's compiler recurses over chains of them, and
/// thousands would overflow its stack.
const MAX_OPERATORS: usize = 500;

/// The most references whose values an error shows.
const MAX_SEEN: usize = 8;

/// An expression over a scope, such as a task's `when`. Compiled once, evaluated often.
#[derive(Clone)]
pub struct Expression {
    source: Arc<str>,
    code: Code,
}

#[derive(Clone)]
enum Code {
    /// Only a reference: no engine is needed.
    Reference(Reference),
    Computed(Arc<Computed>),
}

struct Computed {
    compiled: Compiled,
    references: Vec<Reference>,
}

impl Expression {
    /// Compiles an expression, with or without its braces: `{{ input.n > 3 }}` or `input.n > 3`.
    pub fn compile(text: &str) -> Result<Self, TemplateProblem> {
        scan::condition(text)
            .and_then(Expression::bare)
            .map_err(|message| TemplateProblem { at: String::new(), message })
    }

    /// Compiles an expression that stood in braces.
    pub(super) fn bare(source: &str) -> Result<Self, String> {
        let code = match Reference::parse(source) {
            Some(reference) => Code::Reference(reference),
            None => Code::Computed(Arc::new(
                compute(source).map_err(|problem| format!("{{{{ {} }}}}: {problem}", excerpt(source)))?,
            )),
        };
        Ok(Expression { source: source.into(), code })
    }

    /// The expression, without its braces.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Every place in the scope that it refers to, once.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        match &self.code {
            Code::Reference(reference) => std::slice::from_ref(reference),
            Code::Computed(computed) => &computed.references,
        }
        .iter()
    }

    /// Whether its value counts as true: all do but `false`, `null`, 0 and what is empty.
    pub fn holds(&self, scope: &Scope) -> Result<bool, TemplateError> {
        self.evaluate(scope).map(|value| match &*value {
            Value::Null => false,
            Value::Bool(value) => *value,
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
        })
    }

    /// Its value.
    pub fn value(&self, scope: &Scope) -> Result<Value, TemplateError> {
        self.evaluate(scope).map(Cow::into_owned)
    }

    /// Its value, borrowed from the scope where it stands there.
    pub(super) fn evaluate<'s>(&self, scope: &'s Scope) -> Result<Cow<'s, Value>, TemplateError> {
        match &self.code {
            Code::Reference(reference) => {
                reference.resolve(scope).map_err(|missing| missing.into_error(&self.source))
            }
            Code::Computed(computed) => match engine::run(&computed.compiled, scope.context()) {
                Ok(value) => Ok(Cow::Owned(value)),
                Err(failed) => Err(self.explain(scope, failed)),
            },
        }
    }

    /// Tells what is missing and what the references lead to, which the engine does not.
    #[cold]
    fn explain(&self, scope: &Scope, failed: Failed) -> TemplateError {
        let (mut missing, mut seen) = (vec![], vec![]);
        for reference in self.references().take(MAX_SEEN) {
            match reference.resolve(scope) {
                Ok(value) => seen.push(format!("{reference} is {}", shown(&value))),
                Err(nothing) => {
                    seen.extend(nothing.parent.map(|parent| format!("{parent} is {}", nothing.found)));
                    missing.push(nothing.reason);
                }
            }
        }
        let reason = match failed {
            // Operators complain about the type of what does not exist.
            Failed::Because(reason) if missing.is_empty() || !reason.contains("undefined") => reason,
            Failed::Undefined if missing.is_empty() => "uses a value that does not exist".to_owned(),
            _ => missing.join(", "),
        };
        TemplateError::new(&self.source, reason, seen.join(", "))
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{ {} }}}}", self.source)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// Compiles what is more than a reference, and finds now what the engine would find only at run time.
fn compute(source: &str) -> Result<Computed, String> {
    let names = scan::names(source);
    if names.operators > MAX_OPERATORS {
        return Err(format!("has more than {MAX_OPERATORS} operators and brackets"));
    }
    // Going backwards, the engine panics where there is nothing to go through.
    if let Some(step) = scan::odd_step(source) {
        let step = excerpt(step);
        return Err(format!(
            "a slice goes forward, as in `list[1:3]` or `list[::2]`, not by `{step}`; see `| reverse`"
        ));
    }
    let compiled = engine::compile(&names.source)?;
    if let Some(name) = names.filters.iter().find(|name| !engine::has_filter(name)) {
        return Err(format!("there is no filter {name:?}"));
    }
    if let Some(name) = names.tests.iter().find(|name| !engine::has_test(name)) {
        return Err(format!("there is no test {name:?}"));
    }
    if let Some(name) = names.functions.iter().find(|name| !engine::has_function(name)) {
        return Err(format!("there is no function {name:?}"));
    }
    if let Some(name) = names.methods.first() {
        return Err(format!("values have no methods such as {name:?}; use a filter, as in `value | upper`"));
    }
    Ok(Computed { compiled, references: names.references.into_iter().collect() })
}
