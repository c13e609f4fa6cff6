//! The other users: a constant load, and the latency of each response.
//!
//! Requests have scheduled times, and latency is measured from them: a
//! stalled server cannot hide requests without a response.

use crate::broker::{USERS, user};
use crate::http::{connect, provision, request};
use std::net::SocketAddr;
use std::time::Duration;
use sutler_servers::http::HttpConnection;
use tokio::time::{Instant, sleep_until, timeout};

/// Pause between the requests of one user.
const EVERY: Duration = Duration::from_millis(25);
/// A response that takes longer counts as missing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Response times of the users.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserLatency {
    /// Response times, sorted.
    took: Vec<Duration>,
    /// Requests that were refused, cut off, or not answered.
    pub unanswered: usize,
}

impl UserLatency {
    fn of(mut took: Vec<Duration>, unanswered: usize) -> Self {
        took.sort_unstable();
        Self { took, unanswered }
    }

    pub(crate) fn count(&self) -> usize {
        self.took.len()
    }

    /// Response time of a percentile.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let last = self.took.len().saturating_sub(1);
        let at = (self.took.len() * percent / 100).min(last);
        self.took.get(at).copied().unwrap_or_default()
    }
}

/// Runs all users for a time. `round` separates their instances from earlier ones.
pub(crate) async fn work(to: SocketAddr, lasting: Duration, round: usize) -> UserLatency {
    let tasks: Vec<_> = (0..USERS)
        .map(|n| tokio::spawn(one(to, n, lasting, round)))
        .collect();
    let (mut took, mut unanswered) = (Vec::new(), 0);
    for task in tasks {
        let (its, failed) = task.await.unwrap_or((Vec::new(), 1));
        took.extend(its);
        unanswered += failed;
    }
    UserLatency::of(took, unanswered)
}

async fn one(to: SocketAddr, n: usize, lasting: Duration, round: usize) -> (Vec<Duration>, usize) {
    let name = user(n);
    let own = format!("{name}-{round}");
    let (mut took, mut unanswered) = (Vec::new(), 0);
    let begun = Instant::now() + EVERY * u32::try_from(n).unwrap_or(0) / 8;
    let mut stream = None;
    for turn in 0_u32.. {
        let due = begun + EVERY * turn;
        if due > begun + lasting {
            break;
        }
        sleep_until(due).await;
        let request_bytes = match turn % 5 {
            0 => provision(&name, &format!("{own}-{turn}")),
            1 => request(&name, &format!("GET /v2/service_instances/{own}-0"), ""),
            2 => {
                let line = format!("GET /v2/service_instances/{own}-0/last_operation");
                request(&name, &line, "")
            }
            _ => request(&name, "GET /v2/catalog", ""),
        };
        let answer = async {
            let mut open = match stream.take() {
                Some(open) => open,
                None => HttpConnection::new(connect(to, 1).await?)?,
            };
            let status = open.send(request_bytes.as_bytes()).await?.status;
            stream = Some(open);
            Ok::<_, std::io::Error>(status)
        };
        match timeout(PATIENCE, answer).await {
            Ok(Ok(200..=299)) => took.push(due.elapsed()),
            Ok(Ok(_) | Err(_)) | Err(_) => unanswered += 1,
        }
    }
    (took, unanswered)
}

#[cfg(test)]
mod tests {
    use super::UserLatency;
    use std::time::Duration;

    #[test]
    fn percentiles_are_taken_from_the_sorted_times() {
        let times = (1..=100).rev().map(Duration::from_millis).collect();
        let noticed = UserLatency::of(times, 0);
        assert_eq!(noticed.percentile(50), Duration::from_millis(51));
        assert_eq!(noticed.percentile(99), Duration::from_millis(100));
        assert_eq!(UserLatency::default().percentile(99), Duration::ZERO);
    }
}
