//! A bounded pool of connections.
//!
//! Connections are not checked before use: another round trip would double the cost of a
//! poll. So one that broke while idle is noticed when it is used; `PooledConnection::is_fresh` returns
//! whether that is a possible reason. A connection returns to the pool only by
//! [`PooledConnection::keep`]: one whose user was cancelled is closed.

use crate::error::SqlError;
use crate::settings::SqlSettings;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Lifetime of a connection, after which it is replaced, so that changes behind a DNS name or a load
/// balancer take effect.
const OLD: Duration = Duration::from_secs(30 * 60);

/// Creates connections.
pub trait Connector: Send + Sync + 'static {
    /// A connection that is ready for statements.
    type Connection: Send + 'static;
    /// Connects.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, SqlError>> + Send;
}

struct IdleConnection<T> {
    line: T,
    born: Instant,
    era: u64,
}

struct IdleConnections<T> {
    kept: Vec<IdleConnection<T>>,
    /// Increases when all connections are assumed to be broken.
    era: u64,
}

/// All connections of a store.
pub(crate) struct Pool<L: Connector> {
    link: L,
    idle: Mutex<IdleConnections<L::Connection>>,
    permits: Semaphore,
    settings: SqlSettings,
}

impl<L: Connector> Pool<L> {
    pub(crate) fn new(link: L, settings: SqlSettings) -> Self {
        Self {
            link,
            idle: Mutex::new(IdleConnections {
                kept: Vec::new(),
                era: 0,
            }),
            permits: Semaphore::new(settings.connections.max(1)),
            settings,
        }
    }

    /// The connector.
    #[cfg(feature = "postgres")]
    pub(crate) fn connector(&self) -> &L {
        &self.link
    }

    /// An idle connection, or a new one.
    pub(crate) async fn acquire(&self) -> Result<PooledConnection<'_, L>, SqlError> {
        let permit = self.permit().await?;
        let kept = self.idle().take();
        if let Some(kept) = kept {
            return Ok(PooledConnection {
                pool: self,
                fresh: false,
                kept,
                _permit: permit,
            });
        }
        self.make(permit).await
    }

    /// Drops all idle connections after one broke: they are most likely broken, too.
    pub(crate) fn distrust(&self) {
        let mut idle = self.idle();
        idle.era += 1;
        idle.kept.clear();
    }

    async fn permit(&self) -> Result<SemaphorePermit<'_>, SqlError> {
        let waited = self.settings.wait_timeout;
        match timeout(waited, self.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(SqlError::Unsent(format!(
                "all {} connections were in use for {waited:?}",
                self.settings.connections
            ))),
        }
    }

    async fn make<'p>(
        &'p self,
        permit: SemaphorePermit<'p>,
    ) -> Result<PooledConnection<'p, L>, SqlError> {
        let era = self.idle().era;
        let within = self.settings.connect_timeout;
        match timeout(within, self.link.connect()).await {
            Ok(line) => Ok(PooledConnection {
                pool: self,
                fresh: true,
                kept: IdleConnection {
                    line: line?,
                    born: Instant::now(),
                    era,
                },
                _permit: permit,
            }),
            Err(_) => Err(SqlError::Unsent(format!("no connection within {within:?}"))),
        }
    }

    fn idle(&self) -> MutexGuard<'_, IdleConnections<L::Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> IdleConnections<T> {
    fn take(&mut self) -> Option<IdleConnection<T>> {
        while let Some(kept) = self.kept.pop() {
            if kept.born.elapsed() < OLD {
                return Some(kept);
            }
        }
        None
    }
}

/// A connection in use.
pub struct PooledConnection<'p, L: Connector> {
    pool: &'p Pool<L>,
    fresh: bool,
    kept: IdleConnection<L::Connection>,
    _permit: SemaphorePermit<'p>,
}

impl<L: Connector> PooledConnection<'_, L> {
    /// The connection.
    pub(crate) fn connection(&mut self) -> &mut L::Connection {
        &mut self.kept.line
    }

    /// Whether it was created for this use.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Returns a working connection to the pool.
    pub(crate) fn keep(self) {
        let mut idle = self.pool.idle();
        if self.kept.era == idle.era {
            idle.kept.push(self.kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Connector, Pool};
    use crate::error::SqlError;
    use crate::settings::SqlSettings;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// Numbers instead of connections.
    #[derive(Default)]
    struct Numbers(AtomicUsize);

    impl Connector for Numbers {
        type Connection = usize;
        async fn connect(&self) -> Result<usize, SqlError> {
            Ok(self.0.fetch_add(1, Ordering::Relaxed))
        }
    }

    fn pool(connections: usize) -> Pool<Numbers> {
        let settings = SqlSettings {
            connections,
            wait_timeout: Duration::from_millis(1),
            ..SqlSettings::default()
        };
        Pool::new(Numbers::default(), settings)
    }

    #[tokio::test]
    async fn a_kept_connection_is_reused_and_others_are_closed() {
        let pool = pool(2);
        let mut first = pool.acquire().await.unwrap();
        assert_eq!((*first.connection(), first.is_fresh()), (0, true));
        first.keep();
        let mut again = pool.acquire().await.unwrap();
        assert_eq!((*again.connection(), again.is_fresh()), (0, false));
        drop(again);
        assert_eq!(*pool.acquire().await.unwrap().connection(), 1);
    }

    #[tokio::test]
    async fn the_number_of_connections_is_limited() {
        let pool = pool(1);
        let held = pool.acquire().await.unwrap();
        assert!(matches!(pool.acquire().await, Err(SqlError::Unsent(_))));
        held.keep();
        assert!(pool.acquire().await.is_ok());
    }

    #[tokio::test]
    async fn after_a_break_no_earlier_connection_is_reused() {
        let pool = pool(2);
        let (idle, out) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
        idle.keep();
        pool.distrust();
        out.keep();
        assert_eq!(*pool.acquire().await.unwrap().connection(), 2);
    }
}
