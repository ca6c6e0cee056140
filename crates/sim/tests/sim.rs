//! Seeds that hold, exact replays, shortened scripts, and scripts that once failed.

use sim::script::{Action, Habits};
use sim::shrink::shrink;
use sim::tally::Tally;
use sim::{Script, generate, run};
use std::path::Path;

/// How many seeds are run where nothing else is said.
const SEEDS: u64 = 150;

/// Set `SIM_SEEDS` to run more of them.
#[test]
fn seeds_hold() {
    let seeds = std::env::var("SIM_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let mut tally = Tally::default();
    for seed in 0..seeds {
        let outcome = run(&generate(seed), false);
        if let Some(violation) = outcome.violation {
            panic!(
                "seed {seed}: {violation}\nsee it with: cargo run --release -p sim -- --seed {seed} --trace"
            );
        }
        tally.merge(&outcome.tally);
    }
    // What is rare may be missing in so few seeds, but these are the daily bread.
    for (what, how) in [
        ("actions", "kill"),
        ("actions", "freeze"),
        ("actions", "clock jump back"),
        ("faults", "unknown after the effect"),
        ("faults", "settlement twice"),
        ("settlements", "stale"),
        ("sweeps", "lost"),
        ("ends", "completed"),
        ("runs", "calm"),
    ] {
        assert!(tally.of(what, how) > 0, "{what}: {how} never happened in {seeds} seeds");
    }
}

#[test]
fn a_seed_runs_the_same_way_every_time() {
    for seed in 0..100 {
        let script = generate(seed);
        let (first, second) = (run(&script, true), run(&script, true));
        let parts = first.lines.iter().zip(&second.lines).find(|(one, other)| one != other);
        assert_eq!(parts, None, "seed {seed}: the first lines that differ");
        assert_eq!(first.digest, second.digest, "seed {seed}");
        assert_eq!(first.tally, second.tally, "seed {seed}");
    }
}

#[test]
fn a_kept_script_is_the_script() {
    for seed in 0..50 {
        let script = generate(seed);
        let text = serde_json::to_string(&script).expect("scripts are JSON");
        let back: Script = serde_json::from_str(&text).expect("scripts read back");
        assert_eq!(back, script, "seed {seed}");
    }
}

/// With a rule that no job may ever be cancelled by somebody, a script comes down to a job and its cancel.
#[test]
fn a_failing_script_is_made_tiny() {
    let cancels = |script: &Script| run(script, false).tally.of("cancel", "done") > 0;
    let script = (0..).map(generate).find(cancels).expect("some seed cancels a job");
    let short = shrink(&script, cancels, || true);
    assert!(cancels(&short), "it still breaks the rule");
    // Two, or three where the cancel means another job than it names.
    assert!(short.steps.len() <= 3, "{short}");
    assert!(matches!(short.steps[0].action, Action::Submit { .. }), "{short}");
    assert_eq!(short.settings.replicas, 1, "{short}");
    assert_eq!(short.faults, Default::default(), "{short}");
    let plain = Habits { span: short.handlers.span, ..Habits::default() };
    assert_eq!(short.handlers, plain, "{short}");
}

/// Every script in `regressions` broke a rule once.
#[test]
fn what_once_failed_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    for entry in folder.read_dir().expect("the folder is part of the crate") {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_none_or(|kind| kind != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a readable script");
        let script: Script = serde_json::from_str(&text).expect("a script");
        let outcome = run(&script, false);
        assert_eq!(outcome.violation, None, "{}", path.display());
    }
}
