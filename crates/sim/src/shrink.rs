//! Makes a failing script shorter, as long as it goes on to fail with the same kind of violation.
//!
//! First whole actions go, in chunks and then one by one (delta debugging); then processes, kinds of faults and
//! habits of handlers; then what is special about the jobs that are left. That is repeated until nothing more
//! can be left out.

use crate::script::{Action, Faults, Habits, NewWork, Script, Shape, TaskShape};
use orchestrator_core::Priority;

/// Shortens a script. `fails` says whether a candidate still fails in the same way, `goes_on` whether there is
/// time for another one.
pub fn shrink(script: &Script, fails: impl FnMut(&Script) -> bool, goes_on: impl FnMut() -> bool) -> Script {
    let mut search = Search { best: script.clone(), fails, goes_on };
    loop {
        let before = search.best.clone();
        search.drop_steps();
        search.plainer_settings();
        search.fewer_faults();
        search.plainer_jobs();
        if search.best == before || !(search.goes_on)() {
            return search.best;
        }
    }
}

struct Search<F, G> {
    best: Script,
    fails: F,
    goes_on: G,
}

impl<F: FnMut(&Script) -> bool, G: FnMut() -> bool> Search<F, G> {
    /// Takes a candidate if it still fails.
    fn take(&mut self, candidate: Script) -> bool {
        let better = candidate != self.best && (self.goes_on)() && (self.fails)(&candidate);
        if better {
            self.best = candidate;
        }
        better
    }

    /// Tries a change of the best script so far.
    fn attempt(&mut self, change: impl FnOnce(&mut Script)) -> bool {
        let mut candidate = self.best.clone();
        change(&mut candidate);
        self.take(candidate)
    }

    fn drop_steps(&mut self) {
        let mut chunk = (self.best.steps.len() / 2).max(1);
        loop {
            let mut from = 0;
            while from < self.best.steps.len() {
                let to = (from + chunk).min(self.best.steps.len());
                let dropped = self.attempt(|script| {
                    script.steps.drain(from..to);
                });
                if !dropped {
                    from = to;
                }
            }
            if chunk == 1 {
                return;
            }
            chunk /= 2;
        }
    }

    fn plainer_settings(&mut self) {
        for replicas in 1..self.best.settings.replicas {
            if self.attempt(|script| script.settings.replicas = replicas) {
                break;
            }
        }
        self.attempt(|script| script.settings.latency = 0);
        self.attempt(|script| script.settings.prefetch = (0, 0));
        self.attempt(|script| script.settings.hints = true);
        self.attempt(|script| script.settings.limits.clear());
        self.attempt(|script| script.settings.workers = 1);
    }

    fn fewer_faults(&mut self) {
        const FAULTS: [fn(&mut Faults) -> &mut u16; 7] = [
            |faults| &mut faults.error,
            |faults| &mut faults.unknown_after,
            |faults| &mut faults.unknown_before,
            |faults| &mut faults.slow,
            |faults| &mut faults.stall,
            |faults| &mut faults.duplicate,
            |faults| &mut faults.lost_hint,
        ];
        const HABITS: [fn(&mut Habits) -> &mut u16; 9] = [
            |habits| &mut habits.fail,
            |habits| &mut habits.panic,
            |habits| &mut habits.hang,
            |habits| &mut habits.deaf,
            |habits| &mut habits.leg,
            |habits| &mut habits.skip,
            |habits| &mut habits.give_back,
            |habits| &mut habits.too_large,
            |habits| &mut habits.long,
        ];
        self.attempt(|script| script.faults = Faults::default());
        self.attempt(|script| script.handlers = Habits { span: script.handlers.span, ..Habits::default() });
        for fault in FAULTS {
            self.attempt(|script| *fault(&mut script.faults) = 0);
        }
        for habit in HABITS {
            self.attempt(|script| *habit(&mut script.handlers) = 0);
        }
    }

    fn plainer_jobs(&mut self) {
        for n in 0..self.best.steps.len() {
            for change in [
                |work: &mut NewWork| work.after.clear(),
                |work: &mut NewWork| work.run_in = None,
                |work: &mut NewWork| (work.tenant, work.priority) = (0, Priority::Normal),
            ] {
                self.change_work(n, change);
            }
            while self.change_work(n, drop_last_task) {}
            for task in 0..task_count(&self.best, n) {
                for change in [
                    |task: &mut TaskShape| task.limits.clear(),
                    |task: &mut TaskShape| task.items = None,
                    |task: &mut TaskShape| task.when = None,
                    |task: &mut TaskShape| task.optional = false,
                    |task: &mut TaskShape| task.join = Default::default(),
                    |task: &mut TaskShape| task.timeout = None,
                    |task: &mut TaskShape| task.retries = 0,
                ] {
                    self.change_work(n, |work| tasks(work).get_mut(task).into_iter().for_each(change));
                }
            }
        }
    }

    fn change_work(&mut self, step: usize, change: impl FnOnce(&mut NewWork)) -> bool {
        self.attempt(|script| {
            if let Some(Action::Submit { what, .. }) = script.steps.get_mut(step).map(|step| &mut step.action)
            {
                change(what);
            }
        })
    }
}

fn tasks(work: &mut NewWork) -> &mut [TaskShape] {
    match &mut work.shape {
        Shape::Task(task) => std::slice::from_mut(task),
        Shape::Flow { tasks, .. } => tasks,
    }
}

fn task_count(script: &Script, step: usize) -> usize {
    match script.steps.get(step).map(|step| &step.action) {
        Some(Action::Submit { what, .. }) => tasks(&mut what.clone()).len(),
        _ => 0,
    }
}

fn drop_last_task(work: &mut NewWork) {
    if let Shape::Flow { tasks, .. } = &mut work.shape
        && tasks.len() > 1
    {
        tasks.pop();
    }
}
