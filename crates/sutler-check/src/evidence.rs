//! Bounds the answers that are kept as evidence of failures.
//!
//! A broker with many wrong and long answers must not fill the memory of the check.

use crate::exchange::Exchange;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use sutler_client::wire::{Answer, Request, TransportError};

/// Longest answer other than a catalog, in bytes: a binding with its credentials is a thousandth
/// of it.
const ANSWER_BYTES_MAX: usize = 512 * 1024;
/// Total bytes of answers kept.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Evidence kept so far.
#[derive(Default)]
pub(crate) struct Evidence {
    kept: Mutex<KeptExchanges>,
}

#[derive(Default)]
struct KeptExchanges {
    /// Addresses of kept exchanges, which stay valid: one exchange may prove many failures.
    exchanges: HashSet<usize>,
    bytes: usize,
}

impl Evidence {
    /// The exchange to keep; `None` if the limit is reached.
    pub(crate) fn keep(&self, exchange: &Arc<Exchange>) -> Option<Arc<Exchange>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let address = Arc::as_ptr(exchange).addr();
        if !kept.exchanges.contains(&address) {
            let more = exchange.outcome.as_ref().map_or(0, |it| it.body.len());
            if kept.bytes + more > KEPT_BYTES_MAX {
                return None;
            }
            kept.bytes += more;
            kept.exchanges.insert(address);
        }
        Some(exchange.clone())
    }
}

/// The answer, unless it is longer than any answer to this request needs to be.
pub(crate) fn bounded(request: &Request, answer: Answer) -> Result<Answer, TransportError> {
    let is_catalog = request.path.last().is_some_and(|it| it == "catalog");
    if is_catalog || answer.body.len() <= ANSWER_BYTES_MAX {
        Ok(answer)
    } else {
        Err(TransportError::TooLong(ANSWER_BYTES_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::{ANSWER_BYTES_MAX, Evidence, KEPT_BYTES_MAX, bounded};
    use crate::exchange::Exchange;
    use std::sync::Arc;
    use std::time::Duration;
    use sutler_client::wire::{Answer, Method, Request};

    fn answer(bytes: usize) -> Answer {
        Answer {
            status: 200,
            headers: Default::default(),
            body: vec![b' '; bytes].into(),
            took: Duration::ZERO,
        }
    }

    fn exchange(bytes: usize) -> Arc<Exchange> {
        let request = Request::new(Method::Get, &["v2", "catalog"]);
        Arc::new(Exchange::new(request, Ok(answer(bytes))))
    }

    #[test]
    fn one_answer_shows_many_failures_and_is_counted_once() {
        let evidence = Evidence::default();
        let large = exchange(KEPT_BYTES_MAX - 1);
        assert!((0..100).all(|_| evidence.keep(&large).is_some()));
        let small = exchange(1);
        assert!(evidence.keep(&small).is_some());
        assert!(evidence.keep(&exchange(1)).is_none());
        assert!(evidence.keep(&large).is_some());
    }

    #[test]
    fn only_a_catalog_may_be_long() {
        let catalog = Request::new(Method::Get, &["v2", "catalog"]);
        let other = Request::new(Method::Get, &["v2", "service_instances", "one"]);
        assert!(bounded(&catalog, answer(ANSWER_BYTES_MAX + 1)).is_ok());
        assert!(bounded(&other, answer(ANSWER_BYTES_MAX)).is_ok());
        assert!(bounded(&other, answer(ANSWER_BYTES_MAX + 1)).is_err());
    }
}
