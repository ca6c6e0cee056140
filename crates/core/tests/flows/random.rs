//! Random flows under random outcomes, in random order: what must hold for all of them.

use crate::harness::{Job, task};
use orchestrator_core::flow::advance::From;
use orchestrator_core::flow::{Flow, JoinRule};
use orchestrator_core::{Failure, JobState, Json, Outcome, TaskState};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
struct Node {
    /// Where it stands in an order in which needs come first.
    rank: u32,
    /// Of the tasks of a lower rank, those that it needs.
    wants: u16,
    join: JoinRule,
    optional: bool,
    /// How many items, and how many of them at once.
    each: Option<(usize, Option<u32>)>,
    /// How its attempts end: of the task, or of its items.
    ends: [End; 4],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Good,
    Nothing,
    Bad,
}

/// How a task ends, by the rules and nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Completed,
    Skipped,
    Failed,
    Blocked,
}

impl Verdict {
    fn bad(self) -> bool {
        matches!(self, Verdict::Failed | Verdict::Blocked)
    }

    fn state(self) -> TaskState {
        match self {
            Verdict::Completed => TaskState::Completed,
            Verdict::Skipped | Verdict::Blocked => TaskState::Skipped,
            Verdict::Failed => TaskState::Failed,
        }
    }
}

fn node() -> impl Strategy<Value = Node> {
    let end = prop_oneof![5 => Just(End::Good), 1 => Just(End::Nothing), 2 => Just(End::Bad)];
    let each = proptest::option::weighted(0.3, (0usize..5, proptest::option::of(1u32..4)));
    let join = proptest::sample::select(JoinRule::ALL.to_vec());
    let ends = [end.clone(), end.clone(), end.clone(), end];
    (any::<u32>(), any::<u16>(), any::<u16>(), join, proptest::bool::weighted(0.2), each, ends).prop_map(
        |(rank, some, few, join, optional, each, ends)| Node {
            rank,
            wants: some & few,
            join,
            optional,
            each,
            ends,
        },
    )
}

/// A flow and its needs.
struct Graph<'a> {
    nodes: &'a [Node],
    needs: Vec<Vec<usize>>,
}

impl<'a> Graph<'a> {
    fn of(nodes: &'a [Node]) -> Self {
        let before = |n: usize, m: usize| (nodes[m].rank, m) < (nodes[n].rank, n);
        let wanted = |n: usize, m: &usize| nodes[n].wants >> m & 1 == 1 && before(n, *m);
        let needs = (0..nodes.len()).map(|n| (0..nodes.len()).filter(|m| wanted(n, m)).collect()).collect();
        Graph { nodes, needs }
    }

    fn flow(&self) -> Flow {
        (0..self.nodes.len()).fold(Flow::new("random").max_recoveries(9), |flow, n| {
            let Node { join, optional, each, .. } = &self.nodes[n];
            let mut task = task(&format!("t{n}")).join(*join);
            task = task.needs(self.needs[n].iter().map(|need| format!("t{need}")));
            if *optional {
                task = task.optional();
            }
            if let Some((count, at_once)) = each {
                task = task.for_each(json!((0..*count).collect::<Vec<_>>()));
                task = at_once.iter().fold(task, |task, at_once| task.concurrency(*at_once));
            }
            flow.task(task)
        })
    }

    fn end(&self, n: usize, item: usize) -> End {
        self.nodes[n].ends[item % 4]
    }

    /// What the rules say of every task. Those that are `kept` have ended before.
    fn verdicts(&self, kept: &[Option<Verdict>], end: impl Fn(usize, usize) -> End) -> Vec<Verdict> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|n| (self.nodes[*n].rank, *n));
        let mut all = vec![Verdict::Blocked; self.nodes.len()];
        for n in order {
            let Node { join, optional, each, .. } = self.nodes[n];
            let needs = || self.needs[n].iter().map(|need| (all[*need], self.nodes[*need].optional));
            let any_bad = needs().any(|(verdict, _)| verdict.bad());
            let fine = |(verdict, optional): (Verdict, bool)| {
                verdict == Verdict::Completed || verdict == Verdict::Skipped && optional
            };
            let runs = match join {
                JoinRule::AllCompleted => needs().all(fine),
                JoinRule::AllDone => true,
                JoinRule::AnyFailed => any_bad,
            };
            let fails = |item| end(n, item) == End::Bad && !optional;
            all[n] = match (kept[n], each) {
                (Some(before), _) => before,
                _ if !runs && any_bad => Verdict::Blocked,
                _ if !runs => Verdict::Skipped,
                (_, Some((count, _))) if (0..count).any(fails) => Verdict::Failed,
                (_, Some(_)) => Verdict::Completed,
                (_, None) if fails(0) => Verdict::Failed,
                (_, None) if end(n, 0) == End::Good => Verdict::Completed,
                (_, None) => Verdict::Skipped,
            };
        }
        all
    }

    /// These tasks and all that hang on them.
    fn closure(&self, heads: impl Iterator<Item = usize>) -> BTreeSet<usize> {
        let mut all: BTreeSet<usize> = heads.collect();
        loop {
            let more = |n: &usize| !all.contains(n) && self.needs[*n].iter().any(|need| all.contains(need));
            let Some(n) = (0..self.nodes.len()).find(more) else { return all };
            all.insert(n);
        }
    }
}

/// A small source of choices.
struct Dice(u64);

impl Dice {
    fn pick(&mut self, from: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % from
    }
}

/// Ends what is in line, in random order, until nothing is, or so often.
fn drive(job: &mut Job, dice: &mut Dice, most: usize, end: impl Fn(usize, usize) -> End) {
    for _ in 0..most {
        let ready = job.ready();
        if ready.is_empty() {
            assert!(job.run.state.is_terminal(), "it stands still: {}", job.states());
            return;
        }
        let index = ready[dice.pick(ready.len())];
        let place = job.run.place(index).unwrap();
        let outcome = match end(place.task as usize, place.item.unwrap_or(0) as usize) {
            End::Good => Outcome::Completed(Json::null()),
            End::Nothing => Outcome::Skipped(Json::null()),
            End::Bad => Outcome::Failed(Failure::permanent("no")),
        };
        job.attempt(index, outcome);
    }
}

fn agrees(job: &Job, verdicts: &[Verdict]) -> Result<(), TestCaseError> {
    let states: Vec<_> = job.run.tasks.iter().map(|standing| standing.state()).collect();
    let expected: Vec<_> = verdicts.iter().map(|verdict| verdict.state()).collect();
    prop_assert_eq!(states, expected);
    let bad = verdicts.iter().any(|verdict| verdict.bad());
    prop_assert_eq!(job.run.state, if bad { JobState::Failed } else { JobState::Completed });
    Ok(())
}

const FOR_EVER: usize = 10_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// The harness checks on the way that nothing starts twice or too early, that windows are kept, that
    /// attempts have their own numbers and that every move is in the table.
    #[test]
    fn a_job_ends_as_the_rules_say_and_recovers(
        nodes in proptest::collection::vec(node(), 1..=12),
        seed in any::<u64>(),
    ) {
        let (graph, mut dice) = (Graph::of(&nodes), Dice(seed));
        let mut job = Job::new(graph.flow(), json!({}));
        drive(&mut job, &mut dice, FOR_EVER, |n, item| graph.end(n, item));
        let verdicts = graph.verdicts(&vec![None; nodes.len()], |n, item| graph.end(n, item));
        agrees(&job, &verdicts)?;
        if job.run.state == JobState::Completed {
            return Ok(());
        }

        let bad: Vec<usize> = (0..nodes.len()).filter(|n| verdicts[*n].bad()).collect();
        let reset = graph.closure(bad.iter().copied());
        let attempts = |job: &Job| job.attempts();
        let before = attempts(&job);
        job.recover(From::Failures, true).unwrap();
        drive(&mut job, &mut dice, FOR_EVER, |_, _| End::Good);
        prop_assert_eq!(job.run.state, JobState::Completed);
        let kept: Vec<_> = (0..nodes.len()).map(|n| (!reset.contains(&n)).then_some(verdicts[n])).collect();
        agrees(&job, &graph.verdicts(&kept, |_, _| End::Good))?;

        // Nothing ran again that was not to: neither tasks nor items that had ended well.
        for (index, attempt) in attempts(&job).difference(&before) {
            let place = job.run.place(*index).unwrap();
            prop_assert!(reset.contains(&(place.task as usize)), "{} ran again", job.name(*index));
            let again = before.contains(&(*index, 1));
            prop_assert!(again || *attempt == 1);
            if let (Some(item), true) = (place.item, again) {
                prop_assert_eq!(graph.end(place.task as usize, item as usize), End::Bad);
            }
        }
    }

    /// The same when its time runs out in the middle, and again.
    #[test]
    fn a_job_that_ran_out_of_time_recovers(
        nodes in proptest::collection::vec(node(), 1..=12),
        seed in any::<u64>(),
        rounds in proptest::collection::vec(0usize..12, 1..4),
    ) {
        let (graph, mut dice) = (Graph::of(&nodes), Dice(seed));
        let mut job = Job::new(graph.flow(), json!({}));
        for steps in rounds {
            drive(&mut job, &mut dice, steps, |n, item| graph.end(n, item));
            if !job.run.state.is_terminal() {
                job.stop(JobState::TimedOut);
            }
            if job.run.state == JobState::Completed {
                return Ok(());
            }
            let done = job.completed();
            job.recover(From::Failures, true).unwrap();
            // What had completed and hangs on nothing bad stays as it is.
            let bad = (0..nodes.len()).filter(|n| !job.run.tasks[*n].is_over());
            let reset = graph.closure(bad);
            for index in done.iter().copied().filter(|index| (*index as usize) < nodes.len()) {
                let stays = job.run.tasks[index as usize].state() == TaskState::Completed;
                prop_assert!(stays || reset.contains(&(index as usize)));
            }
        }
        drive(&mut job, &mut dice, FOR_EVER, |_, _| End::Good);
        prop_assert_eq!(job.run.state, JobState::Completed);
    }

    /// From any task: it and its descendants run again, and nothing else.
    #[test]
    fn from_a_task_only_its_descendants_run(
        nodes in proptest::collection::vec(node(), 1..=12),
        seed in any::<u64>(),
        head in any::<prop::sample::Index>(),
    ) {
        let (graph, mut dice) = (Graph::of(&nodes), Dice(seed));
        let mut job = Job::new(graph.flow(), json!({}));
        drive(&mut job, &mut dice, FOR_EVER, |n, item| graph.end(n, item));
        let verdicts = graph.verdicts(&vec![None; nodes.len()], |n, item| graph.end(n, item));
        let head = head.index(nodes.len());
        let blocked = nodes[head].join == JoinRule::AllCompleted && graph.needs[head].iter().any(|need| verdicts[*need].bad());
        if job.run.state == JobState::Completed {
            return Ok(());
        }
        let result = job.recover(From::Task(head as u32), true);
        prop_assert_eq!(result.is_err(), blocked);
        if blocked {
            return Ok(());
        }
        let before = job.attempts();
        drive(&mut job, &mut dice, FOR_EVER, |_, _| End::Good);
        let reset = graph.closure([head].into_iter());
        let kept: Vec<_> = (0..nodes.len()).map(|n| (!reset.contains(&n)).then_some(verdicts[n])).collect();
        agrees(&job, &graph.verdicts(&kept, |_, _| End::Good))?;
        for (index, _) in job.attempts().difference(&before) {
            let place = job.run.place(*index).unwrap();
            prop_assert!(reset.contains(&(place.task as usize)));
            prop_assert!(place.item.is_none() || !before.iter().any(|(known, _)| known == index));
        }
    }
}
