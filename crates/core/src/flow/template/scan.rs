//! Reads source text before any engine does: where expressions stand in a string, and which names
//! an expression uses.

use super::reference::{Reference, identifier};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The longest source of one expression, in bytes.
pub const MAX_EXPRESSION: usize = 64 << 10;

/// One part of a string.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Text(&'a str),
    /// What stands between `{{` and `}}`, trimmed.
    Expression(&'a str),
}

/// Cuts a string into its parts.
///
/// Blocks and comments are refused where they are complete; a lone `{%` or `{#`, as in `${#list}`,
/// is text.
pub(super) fn split(text: &str) -> Result<Vec<Part<'_>>, String> {
    let (last_block, last_comment) = (text.rfind("%}"), text.rfind("#}"));
    let mut parts = vec![];
    let (mut from, mut at) = (0, 0);
    while let Some(found) = text[at..].find('{') {
        at += found;
        match text.as_bytes().get(at + 1) {
            Some(b'{') => {
                let inside = at + 2;
                let end = inside
                    + expression_end(&text[inside..]).ok_or_else(|| {
                        "`{{` is never closed, or a bracket or quote inside it is not".to_owned()
                    })?;
                if at > from {
                    parts.push(Part::Text(&text[from..at]));
                }
                parts.push(Part::Expression(in_braces(&text[inside..end])?));
                at = end + 2;
                from = at;
            }
            Some(b'%') if last_block.is_some_and(|end| end > at) => {
                return Err("`{% %}` blocks are not supported: write expressions as `{{ ... }}`, with \
                            `a if b else c` for a choice"
                    .to_owned());
            }
            Some(b'#') if last_comment.is_some_and(|end| end > at) => {
                return Err(
                    "`{# #}` comments are not supported: write `{{ \"{#\" }}` for the text".to_owned()
                );
            }
            _ => at += 1,
        }
    }
    if from < text.len() {
        parts.push(Part::Text(&text[from..]));
    }
    Ok(parts)
}

/// Where the expression ends that begins here: at the first `}}` outside its brackets and strings.
fn expression_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut open) = (0, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => at = string_end(text, at),
            b'(' | b'[' | b'{' => open += 1,
            b'}' if open == 0 && bytes.get(at + 1) == Some(&b'}') => return Some(at),
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The closing quote of the string that opens at `at`, or the end of the text.
fn string_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != bytes[at] {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    end.min(bytes.len())
}

/// The expression in braces, trimmed, if it is one.
fn in_braces(inside: &str) -> Result<&str, String> {
    if inside.starts_with(['-', '+']) || inside.ends_with('-') {
        return Err("`{{-` and `-}}` are not supported: leave a space, as in `{{ -1 }}`".to_owned());
    }
    bounded(inside.trim())
}

fn bounded(expression: &str) -> Result<&str, String> {
    match expression.len() {
        0 => Err("an expression is empty".to_owned()),
        1..=MAX_EXPRESSION => Ok(expression),
        bytes => Err(format!("an expression has {bytes} bytes; at most {MAX_EXPRESSION} are allowed")),
    }
}

/// The one expression that a condition is, with or without its braces.
pub(super) fn condition(text: &str) -> Result<&str, String> {
    let text = text.trim();
    if !text.starts_with("{{") {
        return bounded(text);
    }
    match split(text)?[..] {
        [Part::Expression(expression)] => Ok(expression),
        _ => Err("must be one expression, such as `{{ input.n > 3 }}`".to_owned()),
    }
}

/// What an expression uses.
#[derive(Debug)]
pub(super) struct Names<'a> {
    /// Each place in the scope that it refers to, once.
    pub references: BTreeSet<Reference>,
    pub filters: Vec<&'a str>,
    pub tests: Vec<&'a str>,
    pub functions: Vec<&'a str>,
    pub methods: Vec<&'a str>,
    /// How many operators, brackets and words like `not` it has: it can nest no deeper than that.
    pub operators: usize,
    /// The source for the engine, which reads a dash as a minus: task names that have one are quoted.
    pub source: Cow<'a, str>,
}

/// What makes the next name something else than a reference.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    Dot,
    Pipe,
    Is,
    Other,
}

/// Finds the names in an expression. It need not be a valid one.
pub(super) fn names(source: &str) -> Names<'_> {
    let bytes = source.as_bytes();
    let mut names = Names {
        references: BTreeSet::new(),
        filters: vec![],
        tests: vec![],
        functions: vec![],
        methods: vec![],
        operators: 0,
        source: source.into(),
    };
    let mut quoted = String::new();
    let (mut at, mut copied, mut before) = (0, 0, Before::Other);
    while at < bytes.len() {
        let rest = &source[at..];
        let Some(word) = identifier(rest) else {
            names.operators +=
                usize::from(bytes[at].is_ascii_punctuation() && !b"'\",:".contains(&bytes[at]));
            before = match bytes[at] {
                b if b.is_ascii_whitespace() => before,
                b'.' => Before::Dot,
                b'|' => Before::Pipe,
                _ => Before::Other,
            };
            at = match bytes[at] {
                b'"' | b'\'' => string_end(source, at) + 1,
                // All of a number: the letters in 0xff and 1e9 are no names.
                b if b.is_ascii_digit() => {
                    at + rest
                        .bytes()
                        .position(|b| !b.is_ascii_alphanumeric() && b != b'_')
                        .unwrap_or(rest.len())
                }
                _ => at + rest.chars().next().map_or(1, char::len_utf8),
            };
            continue;
        };
        let called = |length: usize| rest[length..].trim_start().starts_with('(');
        let mut length = word.len();
        let mut next = Before::Other;
        match before {
            Before::Dot if called(length) => names.methods.push(word),
            Before::Dot => {}
            Before::Pipe => names.filters.push(word),
            Before::Is if word == "not" => next = Before::Is,
            Before::Is => names.tests.push(word),
            Before::Other => match Reference::read(rest) {
                None => {
                    names.operators += 1;
                    if word == "is" {
                        next = Before::Is;
                    }
                }
                Some((reference, read)) => {
                    length = read;
                    if let ["tasks", name, ..] = reference.names()[..]
                        && identifier(name) != Some(name)
                        && rest["tasks".len()..].starts_with('.')
                    {
                        let end = "tasks".len();
                        quoted.push_str(&source[copied..at + end]);
                        quoted.push_str(&format!("[{name:?}]"));
                        copied = at + end + 1 + name.len();
                    }
                    if called(read) {
                        match reference.split_last() {
                            Some((value, _)) => {
                                let dot = rest[..read].rfind('.').map_or(0, |dot| dot + 1);
                                names.methods.push(&rest[dot..read]);
                                names.references.insert(value);
                            }
                            None => names.functions.push(word),
                        }
                    } else if !is_keyword_argument(&rest[read..]) {
                        names.references.insert(reference);
                    }
                }
            },
        }
        at += length;
        before = next;
    }
    if copied > 0 {
        quoted.push_str(&source[copied..]);
        names.source = quoted.into();
    }
    names
}

/// The step of a slice, if there is one that is no plain number: `-1` of `list[::-1]`, `input.n` of `list[::input.n]`.
pub(super) fn odd_step(source: &str) -> Option<&str> {
    let bytes = source.as_bytes();
    // Of each open bracket, how many colons it has had and where its last part begins.
    let mut open: Vec<(usize, usize)> = vec![];
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => at = string_end(source, at),
            b'[' | b'(' | b'{' => open.push((0, at + 1)),
            b':' => {
                if let Some((colons, part)) = open.last_mut() {
                    (*colons, *part) = (*colons + 1, at + 1);
                }
            }
            b']' => {
                let step =
                    open.pop().filter(|(colons, _)| *colons > 1).map(|(_, part)| source[part..at].trim());
                if let Some(step) = step.filter(|step| !step.bytes().all(|byte| byte.is_ascii_digit())) {
                    return Some(step);
                }
            }
            b')' | b'}' => {
                open.pop();
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_keyword_argument(after: &str) -> bool {
    let after = after.trim_start();
    after.starts_with('=') && !after.starts_with("==")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strings_are_cut_where_expressions_stand() {
        use Part::{Expression as E, Text as T};
        for (text, parts) in [
            ("", vec![]),
            ("plain {text} }} %}", vec![T("plain {text} }} %}")]),
            ("{{ a }}", vec![E("a")]),
            ("a {{b}}{{ c }} d", vec![T("a "), E("b"), E("c"), T(" d")]),
            ("{{ '}}' ~ \"\\\"}}\" }}!", vec![E("'}}' ~ \"\\\"}}\""), T("!")]),
            ("{{ {'a': {'b': 1}} }}", vec![E("{'a': {'b': 1}}")]),
            ("{{ {'a': {}}}}", vec![E("{'a': {}}")]),
            ("${#list[@]} and printf '{%s}'", vec![T("${#list[@]} and printf '{%s}'")]),
            ("{{ '{% x %}' }}", vec![E("'{% x %}'")]),
            ("{ü{{ 'é' }}ß", vec![T("{ü"), E("'é'"), T("ß")]),
        ] {
            assert_eq!(split(text), Ok(parts), "{text}");
        }
        for (text, problem) in [
            ("{{ a", "never closed"),
            ("{{ 'a }}", "never closed"),
            ("{{ f( }}", "never closed"),
            ("{{ }}", "is empty"),
            ("{{- a }}", "not supported"),
            ("{{ a -}}", "not supported"),
            ("{% if a %}x{% endif %}", "blocks"),
            ("x {# note #}", "comments"),
        ] {
            let message = split(text).unwrap_err();
            assert!(message.contains(problem), "{text}: {message}");
        }
        assert!(split(&format!("{{{{ {} }}}}", "a".repeat(MAX_EXPRESSION + 1))).is_err());
    }

    #[test]
    fn names_are_told_apart() {
        for (source, expected) in [
            ("input.n + 1", "input.n"),
            ("a.b[0]['c d'].e | upper", "a.b[0][\"c d\"].e |upper"),
            ("tasks[input.which].output.n", "input.which tasks"),
            ("input.items[1:input.n]", "input.items input.n"),
            ("x is not defined or y is divisibleby(z)", "x y z ?defined ?divisibleby"),
            ("x is divisibleby 3", "x ?divisibleby"),
            ("a if b else c", "a b c"),
            ("range(input.n) | join(d=',') | length == 3", "input.n |join |length range()"),
            ("input.name.upper() ~ a[b].lower ()", "a b input.name .upper() .lower()"),
            ("'input.x' ~ \"tasks.y\" ~ 'it\\'s a'", ""),
            ("0xff + 1e9 + 1.5e3 + 12_000", ""),
            ("{'k': input.v, \"l\": [item, item_index]}", "input.v item item_index"),
            ("not true and none in [null]", ""),
            ("a . b", "a"),
            ("a == b != c", "a b c"),
            ("é + a", "a"),
        ] {
            let names = names(source);
            let mut found: Vec<String> = names.references.iter().map(Reference::to_string).collect();
            found.extend(names.filters.iter().map(|name| format!("|{name}")));
            found.extend(names.tests.iter().map(|name| format!("?{name}")));
            found.extend(names.functions.iter().map(|name| format!("{name}()")));
            found.extend(names.methods.iter().map(|name| format!(".{name}()")));
            assert_eq!(found.join(" "), expected, "{source}");
            assert_eq!(names.source, source);
        }
    }

    #[test]
    fn whatever_can_nest_is_counted() {
        for (source, count) in [
            ("a.b.c", 0),
            ("[a.b, 'x+y', 1]", 2),
            ("a + b|abs", 2),
            ("not not a", 2),
            ("-a ** b", 3),
            ("a if b else c is odd", 3),
            ("(a).b[0].c", 6),
        ] {
            assert_eq!(names(source).operators, count, "{source}");
        }
    }

    #[test]
    fn steps_are_found_where_slices_are() {
        for source in ["a[1:2]", "a[::2]", "a[::]", "a[b[::3]:c:]", "{'a': {'b': [1]}, 'c': -1}", "a['::-1']"]
        {
            assert_eq!(odd_step(source), None, "{source}");
        }
        for (source, step) in [
            ("a[::-1]", "-1"),
            ("a[1: {'k': 1}['k'] : n]", "n"),
            ("a[b[:: - 2 ]]", "- 2"),
            ("(a)[::[2][0]]", "[2][0]"),
        ] {
            assert_eq!(odd_step(source), Some(step), "{source}");
        }
    }

    #[test]
    fn task_names_with_dashes_are_quoted_for_the_engine() {
        for (source, quoted) in [
            ("tasks.a-b.output.n-1", "tasks[\"a-b\"].output.n-1"),
            (
                "tasks.a-b.output + tasks.c.output + tasks.d-2",
                "tasks[\"a-b\"].output + tasks.c.output + tasks[\"d-2\"]",
            ),
            ("tasks.2nd.output | length", "tasks[\"2nd\"].output | length"),
            ("tasks['a-b'].output ~ 'tasks.a-b'", "tasks['a-b'].output ~ 'tasks.a-b'"),
        ] {
            assert_eq!(names(source).source, quoted);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([{}%#'\"\\\\\\[\\]().|a-c0-9 =é-]|tasks\\.|is |not ){0,40}") {
            let _ = split(&text);
            let _ = condition(&text);
            let _ = names(&text);
            let _ = odd_step(&text);
        }

        /// Nothing is lost: the parts of a string are the string.
        #[test]
        fn text_is_kept(text in "([{}%#'\"a-c éü]|\\{\\{ a \\}\\}){0,20}") {
            if let Ok(parts) = split(&text) {
                let kept: usize = parts.iter().map(|part| match part {
                    Part::Text(text) => text.len(),
                    Part::Expression(_) => 0,
                }).sum();
                prop_assert!(kept <= text.len());
                if !text.contains("{{") {
                    prop_assert_eq!(kept, text.len());
                }
            }
        }
    }
}
