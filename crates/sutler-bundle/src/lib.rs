//! Bundles: a service offered without writing a broker, by a manifest and scripts or an image.
//!
//! What a bundle says about itself is its [`Manifest`]; what a platform sees of it is made by [`offering`].
//! A bundle is run once per action of an operation. What is to be run is an [`Order`], who runs it a
//! [`Runner`], what it gave back [`Given`]. Nothing here answers a platform: that is `sutler-broker`.

pub mod conformance;

mod action;
mod ansible;

mod manifest;

mod catalog;
mod form;
mod ids;
mod schema;
mod upgrade;

mod folder;
mod inspect;
mod pack;
mod page;
mod scaffold;

mod given;
mod order;
mod run;
mod runner;
mod service;

mod reconcile;
mod registry;
mod shelf;
mod work;

pub use action::{Action, UnknownAction};
pub use catalog::{Collision, Offer, offering, side_by_side};
pub use folder::{
    EntryKind, FOLDER_ENTRIES_MAX, FolderEntry, FolderFault, Found, entries, find_manifest,
    read_manifest,
};
pub use given::{Given, Keyed, Progress, ResultWriter};
pub use ids::IdScheme;
pub use inspect::{Finding, Inspection, Severity, inspect};
pub use manifest::{
    ActionRules, Bound, Condition, Dashboard, DashboardOf, Entry, Example, ExampleUpdate, Faults,
    Form, InlineVars, Kind, MANIFEST_BYTES_MAX, MANIFEST_FILES, Manifest, ManifestFault, Occasion,
    OnLost, Parameter, Pattern, PlanEntry, Range, SecretWish, Shape, Upgrade, accepts,
    accepts_change, duration_text, refuse_reserved, with_defaults,
};
pub use order::{Limits, NoRunName, Order, RunName, Runnable, SecretFiles, Vars};
pub use pack::{
    FILE_LABEL, PACKED_BYTES_MAX, PackFault, PackOptions, Packed, RUNTIME_LABEL, SPEC_LABEL, pack,
};
pub use page::page;
pub use reconcile::{
    BundleState, BundleView, BundlesView, DELETIONS, Deletions, OldPaths, Pushes, REFRESH,
    REGISTRY_METRICS, REGISTRY_RECORDS, Refresh, RegistriesView, RegistryView, Shop, ShopFault,
    ShopParts, Source, SpecView,
};
pub use registry::{BUNDLES_MAX, FolderRegistry, Folders, Listed, Offers, Snapshot};
#[cfg(feature = "containers")]
pub use run::container::{ContainerRunner, ContainerSettings, Network, RegistryLogin};
pub use run::process::{
    ProcessRunner, ProcessSettings, RunUser, SUPERVISOR, Supervisor, supervisor,
};
pub use runner::{Exit, Line, RunFault, Runner, Seen};
pub use scaffold::{NewFile, Template, scaffold};
pub use schema::{Dialect, schema};
pub use service::{
    BINDING_STATE_PREFIX, BindingState, BundleService, By, Ending, Fates, HISTORY_MAX,
    HistoryEntry, InstanceState, KeptSecret, Local, LocalFault, LocalGift, LocalRequest,
    NO_SUCH_ACTION, Outcome, Parts, Pin, Redaction, Runners, STATE_BYTES_MAX, STATE_KEYS_MAX,
    STATE_PREFIX, Secrets, SweepFault, Told, TooMuch, Unreadable, Witness, conclude, vars,
};
pub use shelf::{Bundle, Shelf, ShelfFault, TreeFault, manifest_in};
pub use work::{Work, WorkFault};
