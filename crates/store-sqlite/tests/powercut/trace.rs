//! What strace wrote down: one system call after the other, each with the moments of its begin and its end.
//!
//! Threads interrupt each other, so a call may stand on two lines with others between them. What is
//! done between its two lines may have come before or after it; only what stands before the first or
//! after the second is certain.

use std::collections::HashMap;

/// A moment of the trace: line `n` begins its call at `2n`, and ends it at `2n + 1`.
pub type Moment = u64;

/// One system call as strace tells it.
#[derive(Debug)]
pub struct Call {
    pub name: String,
    pub args: String,
    /// What it returned, with all that strace says about it.
    pub result: String,
    pub begin: Moment,
    /// `None` if the process ended before.
    pub end: Option<Moment>,
}

impl Call {
    /// The arguments. Strings are written in hex, so that a comma is never part of one.
    pub fn args(&self) -> Vec<&str> {
        self.args.split(", ").collect()
    }

    /// Whether it came back with an error.
    pub fn failed(&self) -> bool {
        self.result.starts_with("-1 ")
    }
}

/// The calls of a trace, in the order in which they began.
pub fn calls(trace: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = vec![];
    let mut open: HashMap<&str, (usize, &str)> = HashMap::new();
    for (line, at) in trace.lines().zip((0..).step_by(2)) {
        let (thread, told) = line.split_once(' ').unwrap_or_else(|| not_understood(line));
        let told = told.trim_start();
        if told.starts_with("+++ ") || told.starts_with("--- ") {
            continue;
        }
        if let Some(rest) = told.strip_prefix("<... ") {
            let (call, first) = open.remove(thread).unwrap_or_else(|| not_understood(line));
            let (name, second) = rest.split_once(" resumed>").unwrap_or_else(|| not_understood(line));
            assert_eq!(name, calls[call].name, "thread {thread} resumes another call than it left");
            let (args, result) = split(&format!("{first}{second}"));
            let end = returned(&result, at);
            calls[call] = Call { args, result, end, name: name.to_owned(), ..calls[call] };
            continue;
        }
        let (name, rest) = told.split_once('(').unwrap_or_else(|| not_understood(line));
        let name = name.to_owned();
        calls.push(match rest.strip_suffix("<unfinished ...>") {
            Some(first) => {
                let first = first.trim_end();
                assert!(
                    open.insert(thread, (calls.len(), first)).is_none(),
                    "{thread} is in two calls at once"
                );
                Call { name, args: first.to_owned(), result: String::new(), begin: at, end: None }
            }
            None => {
                let (args, result) = split(rest);
                let end = returned(&result, at);
                Call { name, args, result, begin: at, end }
            }
        });
    }
    calls
}

/// When the call of line `at` came back. With a question mark the process ended before.
fn returned(result: &str, at: Moment) -> Option<Moment> {
    (result != "?").then_some(at + 1)
}

/// Splits `args) = result`.
fn split(told: &str) -> (String, String) {
    let (args, result) = told.rsplit_once(" = ").unwrap_or_else(|| not_understood(told));
    let args = args.trim_end().strip_suffix(')').unwrap_or_else(|| not_understood(told));
    let args = args.trim_end_matches(" <unfinished ...>");
    (args.to_owned(), result.trim().to_owned())
}

/// The path in `7<path>`, for what strace says about a file descriptor.
pub fn path(descriptor: &str) -> Option<String> {
    let (_, path) = descriptor.split_once('<')?;
    // After it may stand that the file is no longer there.
    let (path, remark) = path.rsplit_once('>').unwrap_or_else(|| not_understood(descriptor));
    let path = String::from_utf8(bytes(path)).unwrap_or_else(|_| not_understood(descriptor));
    Some(path + remark)
}

/// The bytes of a `"\x61\x62"`.
pub fn string(arg: &str) -> Vec<u8> {
    let quoted = arg.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    bytes(quoted.unwrap_or_else(|| not_understood(arg)))
}

fn bytes(hex: &str) -> Vec<u8> {
    if !hex.starts_with('\\') {
        return hex.as_bytes().to_owned();
    }
    let byte = |escape: &[u8]| match *escape {
        [b'\\', b'x', high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(4).map(byte).collect();
    bytes.unwrap_or_else(|| not_understood(hex))
}

fn digit(hex: u8) -> Option<u8> {
    match hex {
        b'0'..=b'9' => Some(hex - b'0'),
        b'a'..=b'f' => Some(hex - b'a' + 10),
        _ => None,
    }
}

/// What is not understood may be what loses data: it ends the test.
pub fn not_understood(told: &str) -> ! {
    panic!("not understood in the trace: {:.300}", told)
}

#[test]
fn a_call_in_two_halves_is_one() {
    let calls = calls(concat!(
        "7 fdatasync(3<\\x2f\\x61> <unfinished ...>\n",
        "8  write(1<pipe:[9]>, \"\\x61\\x0a\", 2) = 2\n",
        "7 <... fdatasync resumed>)         = 0\n",
        "8 --- SIGCHLD ---\n",
        "8 fsync(3<\\x2f\\x61> <unfinished ...>\n",
        "7 exit_group(0) = ?\n",
    ));
    let moments: Vec<_> = calls.iter().map(|call| (&*call.name, call.begin, call.end)).collect();
    let expected =
        [("fdatasync", 0, Some(5)), ("write", 2, Some(3)), ("fsync", 8, None), ("exit_group", 10, None)];
    assert_eq!(moments, expected);
    assert_eq!((&*calls[0].result, path(&calls[0].args)), ("0", Some("/a".to_owned())));
    assert_eq!(path(calls[1].args()[0]), Some("pipe:[9]".to_owned()));
    assert_eq!(string(calls[1].args()[1]), b"a\n");
}
