//! The service behind the broker for offerings that come from bundles.
//!
//! [`BundleService`] turns requests into runs and results of runs into responses (`service.rs`).
//! Bundles come from watched folders (`bundle_folders.rs`) and from registries (`reconcile.rs`); versions in use are
//! kept on this host (`version_store.rs`). The format of bundles is `sutler-bundle`, running them `sutler-runner`,
//! the OSB endpoints `sutler-broker`.

mod bundle_folders;
mod reconcile;
mod service;
mod version_store;

pub use bundle_folders::{
    BUNDLES_MAX, BundleFolders, FolderRegistry, FoundBundle, OfferSettings, Snapshot,
};
pub use reconcile::{
    ApbCompatRoutes, BundleState, BundleView, BundlesView, CatalogPublisher, DELETIONS, Deletions,
    PublishError, PublisherConfig, Pushes, REFRESH, REGISTRY_METRICS, REGISTRY_RECORDS, Refresh,
    RegistriesView, RegistryView, Source, SpecView,
};
pub use service::{
    ActionInputs, BINDING_STATE_PREFIX, BindingState, BundlePin, BundleService, ChangeOrigin,
    Ending, HISTORY_MAX, HistoryEntry, InstanceState, LocalInstance, LocalRequest, LocalResult,
    LocalRunError, NO_SUCH_ACTION, OperationLookup, OperatorSecret, Outcome, Redaction,
    RunObserver, Runners, STATE_BYTES_MAX, STATE_KEYS_MAX, STATE_PREFIX, Secrets, ServiceParts,
    StateReadError, StateTooLargeError, SweepError, conclude, vars,
};
pub use version_store::{Bundle, FolderTreeError, VersionStore, VersionStoreError, manifest_in};
