//! A store that counts its calls.

use std::sync::{Arc, Mutex};
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use sutler_journal::{MemoryStore, Store};

/// Numbers of calls, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoreCalls {
    pub(crate) gets: usize,
    pub(crate) lists: usize,
    pub(crate) commits: usize,
    pub(crate) writes: usize,
}

impl StoreCalls {
    fn count(&mut self, call: &Call<'_>) {
        match call {
            Call::Commit(commit) => {
                self.commits += 1;
                self.writes += commit.writes().len();
            }
            Call::Read("get") => self.gets += 1,
            Call::Read("list") => self.lists += 1,
            Call::Read(_) | Call::Renew(_) | Call::Claim(_) => {}
            Call::Release(_) | Call::Sweep(_) => {}
        }
    }
}

/// A counting store, and its counts.
pub(crate) fn counted() -> (Arc<dyn Store>, Arc<Mutex<StoreCalls>>) {
    let calls: Arc<Mutex<StoreCalls>> = Arc::default();
    let counts = calls.clone();
    let store = InterceptingStore::new(Arc::new(MemoryStore::new()), move |call| {
        counts.lock().expect("no panic").count(call);
        Intercept::Pass
    });
    (Arc::new(store), calls)
}
