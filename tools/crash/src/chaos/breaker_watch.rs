//! Watches how a breaker opens and closes at every replica: by what each of them shows, and by what each of them sends.

use super::client::ReplicaAddresses;
use crate::platform_kills::api_client::{ApiClient, Asked};
use crate::recording_broker::ReceivedRequest;
use crate::victim::now_us;
use crate::violation::{CheckResult, Violation};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Longest time from the first replica to the last one.
pub(super) const EVERYWHERE_WITHIN: Duration = Duration::from_secs(2);
/// Longest wait for a breaker to change at all: a probe is sent after at most ten seconds.
const CHANGES_WITHIN: Duration = Duration::from_secs(40);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Waits until every replica shows the breaker in a state, soon after the first one. Returns when the first one did, by
/// the machine's clock in microseconds.
///
/// # Errors
/// It takes too long.
pub(super) async fn shown_everywhere(homes: &ReplicaAddresses, state: &str) -> CheckResult<u64> {
    let begun = Instant::now();
    let mut first = None;
    let mut shown = vec![false; homes.len()];
    loop {
        for (home, shown) in homes.iter().zip(&mut shown) {
            let address = *home.borrow();
            if let Some(address) = address.filter(|_| !*shown) {
                *shown = breaker_at(ApiClient::to(address)).await.as_deref() == Some(state);
            }
        }
        if shown.contains(&true) {
            let first = *first.get_or_insert_with(now_us);
            let since = Duration::from_micros(now_us().saturating_sub(first));
            if !shown.contains(&false) {
                return match since <= EVERYWHERE_WITHIN {
                    true => Ok(first),
                    false => Err(Violation::new(format!(
                        "the breaker is {state} everywhere only after {} ms",
                        since.as_millis()
                    ))),
                };
            }
        }
        if begun.elapsed() > CHANGES_WITHIN {
            return Err(Violation::new(format!(
                "the breaker is not {state} everywhere: {shown:?}"
            )));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn breaker_at(client: ApiClient) -> Option<String> {
    let asked = Asked {
        user: Some("ada"),
        path: "/api/v1/brokers/recording",
        ..Asked::default()
    };
    let answer = timeout(ANSWER_WITHIN, client.send(&asked)).await.ok()??;
    answer.body["breaker"]["state"].as_str().map(str::to_owned)
}

/// Whether a request is one of the work that a breaker stops, not a read of the catalog.
fn is_work(request: &&ReceivedRequest) -> bool {
    request.path() != "/v2/catalog"
}

/// Soon after the breaker is open, no replica sends anything but reads of the catalog. Returns when the last one did.
///
/// # Errors
/// One does.
pub(super) fn check_silence(
    requests: &[ReceivedRequest],
    (open, closed): (u64, u64),
) -> CheckResult<Duration> {
    let work = requests.iter().rev().filter(is_work);
    let mut between = work.filter(|it| it.at_us > open && it.at_us < closed);
    let last = between.next();
    let Some(request) = last else {
        return Ok(Duration::ZERO);
    };
    match Duration::from_micros(request.at_us - open) {
        after if after <= EVERYWHERE_WITHIN => Ok(after),
        _ => Err(Violation::new(format!(
            "{:?} sent {} {} {} ms after the breaker opened",
            request.sender,
            request.method,
            request.target,
            (request.at_us - open) / 1_000
        ))),
    }
}

/// After the breaker is closed, every replica sends again. Returns how long the last one took.
///
/// # Errors
/// One does not, in time.
pub(super) fn check_resumption(
    requests: &[ReceivedRequest],
    closed: u64,
    replicas: usize,
) -> CheckResult<Duration> {
    let mut first: BTreeMap<&str, u64> = BTreeMap::new();
    for request in requests.iter().filter(is_work) {
        // It closes a moment before a replica shows it.
        if request.at_us + micros(Duration::from_millis(500)) > closed {
            let sender = request.sender.as_deref().unwrap_or_default();
            first.entry(sender).or_insert(request.at_us);
        }
    }
    let last = first.values().max().copied().unwrap_or(closed);
    let after = Duration::from_micros(last.saturating_sub(closed));
    if first.len() < replicas || after > EVERYWHERE_WITHIN {
        return Err(Violation::new(format!(
            "{replicas} replicas should send within {} ms after the breaker closed: {:?}",
            EVERYWHERE_WITHIN.as_millis(),
            first
                .iter()
                .map(|(name, at)| (name, at.saturating_sub(closed) / 1_000))
                .collect::<Vec<_>>()
        )));
    }
    Ok(after)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
