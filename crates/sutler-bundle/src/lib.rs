//! The format of bundles: a service described by a manifest, with scripts or an image that carry it out.
//!
//! A [`Manifest`] is read and checked here (`manifest.rs`); [`offering`] maps it to the catalog entry a
//! platform sees. Folders are inspected, scaffolded, documented and packed into images. Nothing here runs a
//! bundle (`sutler-runner`) or serves one (`sutler-bundle-service`), and nothing knows a broker or a journal.

mod action;
mod limits;

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

pub use action::{Action, UnknownAction};
pub use catalog::{Collision, Offer, compile_schemas, offering, side_by_side, wanted};
pub use folder::{
    EntryKind, FOLDER_ENTRIES_MAX, FolderEntry, FolderFault, Found, entries, find_manifest,
    read_manifest,
};
pub use ids::IdScheme;
pub use inspect::{Finding, Inspection, Severity, inspect};
pub use limits::Limits;
pub use manifest::{
    ActionRules, AsyncSupport, Bound, Condition, Dashboard, DashboardOf, Entry, Example,
    ExampleUpdate, Faults, Form, InlineVars, Kind, MANIFEST_BYTES_MAX, MANIFEST_FILES, Manifest,
    ManifestFault, Occasion, OnLost, Parameter, PlanEntry, Range, SecretWish, Shape, Upgrade,
    accepts, accepts_change, duration_text, refuse_reserved, with_defaults,
};
pub use pack::{
    FILE_LABEL, PACKED_BYTES_MAX, PackFault, PackOptions, Packed, RUNTIME_LABEL, SPEC_LABEL, pack,
};
pub use page::page;
pub use scaffold::{NewFile, Template, scaffold};
pub use schema::{Dialect, schema};
pub use upgrade::{UpgradeError, Way, is_open};
