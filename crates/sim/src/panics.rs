//! Panics inside a run are findings, not noise on the terminal.
//!
//! A run has its thread to itself, so a hook that writes into the thread's own list tells whose panic it was.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

thread_local! {
    static SEEN: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Watches the panics of this thread until it is dropped.
pub struct Watch(());

/// Starts to watch.
pub fn watch() -> Watch {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let watched = SEEN.with_borrow_mut(|seen| seen.as_mut().map(|seen| seen.push(info.to_string())));
            if watched.is_none() {
                before(info);
            }
        }));
    });
    SEEN.set(Some(vec![]));
    Watch(())
}

impl Watch {
    /// The first panic so far.
    pub fn first(&self) -> Option<String> {
        SEEN.with_borrow(|seen| seen.as_ref().and_then(|seen| seen.first().cloned()))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        SEEN.set(None);
    }
}
