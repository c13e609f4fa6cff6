//! Panics of a checked parser, caught with their message instead of printed.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a function; its panics are recorded, not printed.
pub(crate) fn noted<T>(run: impl FnOnce() -> T) -> T {
    std::panic::set_hook(Box::new(|info| {
        let text = info.payload_as_str().unwrap_or("no message");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        LAST.with_borrow_mut(|last| *last = Some(format!("panicked at {place}: {text}")));
    }));
    let result = run();
    // From here on panics are recorded.
    drop(std::panic::take_hook());
    result
}

/// Panics since the last call, including caught ones.
pub(crate) fn taken() -> Option<String> {
    LAST.take()
}

/// Runs a function; `None` if it panicked.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}
