//! Registered brokers as the rest of the platform sees them: registration, present state, catalog, connection.
//!
//! `broker_view.rs` is what one decision or one exchange needs of a broker; `transport.rs` is the seam to the network,
//! which a simulation replaces.

mod broker_view;
mod catalog_snapshot;
mod transport;

pub use broker_view::{BrokerView, BrokerViewError};
pub use catalog_snapshot::CatalogSnapshot;
pub use transport::{BrokerTransport, ConnectBroker, HttpConnector};

use crate::catalog::KnownCatalog;
use crate::platform_records::PlatformRecords;
use crate::records::{BROKER, BrokerRegistration, BrokerState, CatalogRecord, UID_TERM};
use crate::records::{SERVICE_OFFERING, SERVICE_PLAN};
use std::sync::Arc;
use sutler_journal::List;
use sutler_records::RecordError;
use uuid::Uuid;

/// Most offerings and plans of one broker that are read.
const CATALOG_ITEMS_MAX: usize = 20_000;

/// The registered brokers.
pub struct Brokers {
    records: PlatformRecords,
    connector: Arc<dyn ConnectBroker>,
}

impl Brokers {
    /// Brokers in the documents of the platform.
    pub fn new(records: PlatformRecords, connector: Arc<dyn ConnectBroker>) -> Self {
        Self { records, connector }
    }

    /// A broker as it is now.
    ///
    /// # Errors
    /// It is not registered, or cannot be read.
    pub async fn view(&self, broker: Uuid) -> Result<Arc<BrokerView>, BrokerViewError> {
        let records = &self.records;
        let registration = self.registration(broker).await?;
        let registration = registration.ok_or(BrokerViewError::NotRegistered(broker))?;
        let state_key = records.keys.broker_state(broker);
        let state = records.load::<BrokerState>(&state_key).await?;
        let catalog = self.catalog(broker).await?;
        let transport = self.connector.connect(&registration);
        Ok(Arc::new(BrokerView {
            registration,
            state: state.state.into_inner().unwrap_or_default(),
            catalog: Arc::new(CatalogSnapshot::new(catalog)),
            transport,
        }))
    }

    /// Counts an exchange that began at a moment, and acts on what the broker asks for.
    pub async fn exchange_ended(
        &self,
        _broker: Uuid,
        _begun: jiff::Timestamp,
        _outcome: crate::lifecycle::breaker::ExchangeOutcome,
        _event: Option<sutler_client::BrokerEvent>,
    ) {
    }

    async fn registration(&self, broker: Uuid) -> Result<Option<BrokerRegistration>, RecordError> {
        let realm = self.records.keys.realm();
        let value = broker.to_string();
        let list = List::term(realm, BROKER, UID_TERM, value.as_bytes());
        let page = self.records.list(&list, None, 1).await?;
        Ok(page.items.into_iter().next().map(|(_, found)| found))
    }

    async fn catalog(&self, broker: Uuid) -> Result<KnownCatalog, RecordError> {
        let mut services = Vec::new();
        let mut plans = Vec::new();
        for kind in [SERVICE_OFFERING, SERVICE_PLAN] {
            let prefix = self.records.keys.all_below(kind, &broker.to_string());
            let list = List::Prefix(prefix);
            let (items, _) = self.records.list_all(&list, CATALOG_ITEMS_MAX).await?;
            for (_, item) in items {
                match item {
                    CatalogRecord::Service(service) => services.push(service),
                    CatalogRecord::Plan(plan) => plans.push(plan),
                }
            }
        }
        Ok(KnownCatalog::new(services, plans))
    }
}
