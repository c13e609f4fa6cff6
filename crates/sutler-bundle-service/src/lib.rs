//! The service behind the broker for offerings that come from bundles.
//!
//! [`BundleService`] turns requests into runs and results of runs into responses (`service.rs`).
//! Bundles come from watched folders (`registry.rs`) and from registries (`reconcile.rs`); versions in use are
//! kept on this host (`shelf.rs`). The format of bundles is `sutler-bundle`, running them `sutler-runner`,
//! the OSB endpoints `sutler-broker`.

mod reconcile;
mod registry;
mod service;
mod shelf;

pub use reconcile::{
    BundleState, BundleView, BundlesView, DELETIONS, Deletions, OldPaths, Pushes, REFRESH,
    REGISTRY_METRICS, REGISTRY_RECORDS, Refresh, RegistriesView, RegistryView, Shop, ShopFault,
    ShopParts, Source, SpecView,
};
pub use registry::{BUNDLES_MAX, FolderRegistry, Folders, Listed, Offers, Snapshot};
pub use service::{
    BINDING_STATE_PREFIX, BindingState, BundleService, By, Ending, Fates, HISTORY_MAX,
    HistoryEntry, InstanceState, KeptSecret, Local, LocalFault, LocalGift, LocalRequest,
    NO_SUCH_ACTION, Outcome, Parts, Pin, Redaction, Runners, STATE_BYTES_MAX, STATE_KEYS_MAX,
    STATE_PREFIX, Secrets, SweepFault, Told, TooMuch, Unreadable, Witness, conclude, vars,
};
pub use shelf::{Bundle, Shelf, ShelfFault, TreeFault, manifest_in};
