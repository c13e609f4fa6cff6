//! Looks up versions that are stored but not on this host: another replica may just have read one and made an
//! instance from it.

use super::BundleService;
use crate::version_store::Bundle;
use async_trait::async_trait;
use std::sync::{Arc, Weak};

/// Finds versions that this host does not have.
#[async_trait]
pub(crate) trait VersionLookup: Send + Sync {
    /// The version with this digest, if it is stored.
    ///
    /// # Errors
    /// The lookup is not possible now.
    async fn find(&self, digest: &str) -> Result<Option<Arc<Bundle>>, String>;
}

impl BundleService {
    /// Also looks up versions here. Only the first call has an effect.
    pub(crate) fn look_in(&self, archive: Weak<dyn VersionLookup>) {
        let _ = self.archive.set(archive);
    }

    /// Looks up a version that is not on this host.
    pub(super) async fn archived(&self, digest: &str) -> Result<Option<Arc<Bundle>>, String> {
        match self.archive.get().and_then(Weak::upgrade) {
            Some(archive) => archive.find(digest).await,
            None => Ok(None),
        }
    }
}
