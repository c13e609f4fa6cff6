//! Registries of `sutler broker`: opened from the configuration, refreshed by periodic tasks, shown to operators.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use sutler::{BrokerConfig, open_registry};
use sutler_broker::{AdminExtension, BrokerHandle, Error, PeriodicTask, Result};
use sutler_bundle_service::{
    BundleService, CatalogPublisher, Deletions, OfferSettings, PublishError, PublisherConfig,
    Pushes, Refresh, Snapshot, Source, VersionStore,
};
use sutler_registry::{DEFAULT_TAG, WithdrawalRules};

/// The configured registries and their periodic tasks.
pub(in crate::commands::broker) struct Registries {
    sources: Arc<[Source]>,
    offers: OfferSettings,
    pushes: Pushes,
    refresh: Arc<Refresh>,
    deletions: Arc<Deletions>,
}

/// Opens the configured registries without sending a request. `None` if there is no registry and pushes are off.
pub(super) fn open(
    config: &BrokerConfig,
    offers: OfferSettings,
) -> std::result::Result<Option<Registries>, String> {
    if config.registry.is_empty() && pushes(config) == Pushes::Refused {
        return Ok(None);
    }
    open_any(config, offers).map(Some)
}

fn pushes(config: &BrokerConfig) -> Pushes {
    match &config.bundles {
        Some(bundles) if bundles.compat.dev_broker => Pushes::Taken,
        Some(_) | None => Pushes::Refused,
    }
}

/// As [`open`], but also without any registry.
pub(super) fn open_any(
    config: &BrokerConfig,
    offers: OfferSettings,
) -> std::result::Result<Registries, String> {
    let pushes = pushes(config);
    let variable = |name: &str| std::env::var(name).ok();
    let mut sources = Vec::with_capacity(config.registry.len());
    for block in &config.registry {
        let registry = open_registry(block, &variable);
        let registry = registry.map_err(|why| format!("the registry {} {why}", block.name))?;
        let default_tag = block.tag.default.clone();
        sources.push(Source {
            registry,
            default_tag: default_tag.unwrap_or_else(|| DEFAULT_TAG.to_owned()),
            at_once: config.refresh.at_once,
        });
    }
    let sources: Arc<[Source]> = sources.into();
    let rules = WithdrawalRules {
        grace: config.refresh.grace.0,
        failures_max: config.refresh.withdraw_after_failures,
    };
    let every = config.refresh.every.0;
    let refresh = Refresh::new(sources.clone(), offers.clone(), rules, every);
    let deletions = Deletions::new(sources.clone(), rules, config.refresh.delete_every.0);
    Ok(Registries {
        sources,
        offers,
        pushes,
        refresh: Arc::new(refresh.pushes(pushes)),
        deletions: Arc::new(deletions.pushes(pushes)),
    })
}

impl Registries {
    /// The periodic tasks; each runs on one replica at a time.
    pub(in crate::commands::broker) fn periodic_tasks(&self) -> [Arc<dyn PeriodicTask>; 2] {
        [self.refresh.clone(), self.deletions.clone()]
    }

    /// Publishes the stored bundles, and starts a refresh.
    pub(super) async fn start_publishing(
        &self,
        running: &BrokerHandle,
        version_store: Arc<VersionStore>,
        service: Arc<BundleService>,
        folders: Arc<Snapshot>,
    ) -> std::result::Result<Arc<CatalogPublisher>, PublishError> {
        let parts = PublisherConfig {
            sources: self.sources.clone(),
            offers: self.offers.clone(),
            version_store,
            service,
            refresh: self.refresh.clone(),
            pushes: self.pushes,
        };
        let publisher = CatalogPublisher::open(parts, running.clone(), folders).await?;
        running.extend_admin(Arc::new(RegistryAdminPages(publisher.clone())));
        publisher.refresh().await?;
        Ok(publisher)
    }
}

/// Page and actions of registries in the administration API.
struct RegistryAdminPages(Arc<CatalogPublisher>);

const REFRESH: [&str; 2] = ["registries", "refresh"];

#[async_trait]
impl AdminExtension for RegistryAdminPages {
    async fn read(&self, path: &[String]) -> Option<Result<Value>> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match *path {
            ["bundles"] => Some(self.bundles().await),
            ["registries"] => Some(self.all().await),
            ["registry-plan"] => Some(self.plan().await),
            ["registries", name] => self.one(name).await.transpose(),
            _ => None,
        }
    }

    async fn run_command(&self, path: &[String]) -> Option<Result<Value>> {
        if !self.has_command(path) {
            return None;
        }
        let refresh = self.0.refresh().await;
        let number = refresh.map_err(Error::from);
        Some(number.map(|number| json!({ "number": number })))
    }

    fn has_command(&self, path: &[String]) -> bool {
        path == REFRESH
    }
}

impl RegistryAdminPages {
    async fn all(&self) -> Result<Value> {
        Ok(serde_json::to_value(self.0.view().await?)?)
    }

    async fn one(&self, name: &str) -> Result<Option<Value>> {
        let shown = self.0.view_of(name).await?;
        Ok(shown.map(serde_json::to_value).transpose()?)
    }

    async fn bundles(&self) -> Result<Value> {
        Ok(serde_json::to_value(self.0.bundles().await?)?)
    }

    async fn plan(&self) -> Result<Value> {
        let changes = self.0.plan().await?;
        let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
        Ok(json!({ "changes": serde_json::to_value(&changes)?, "lines": lines }))
    }
}
