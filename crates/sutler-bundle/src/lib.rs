//! The format of bundles: a service described by a manifest, with scripts or an image that carry it out.
//!
//! A [`Manifest`] is read and checked here (`manifest.rs`); [`offering`] maps it to the catalog entry a
//! platform sees. Folders are inspected, scaffolded, documented and packed into images. Nothing here runs a
//! bundle (`sutler-runner`) or serves one (`sutler-bundle-service`), and nothing knows a broker or a journal.

mod action;
mod limits;

mod load_manifest;
mod manifest;

mod catalog;
mod console_forms;
mod ids;
mod schema;
mod upgrade;

mod docs_page;
mod folder;
mod inspect;
mod pack;
mod scaffold;

pub use action::{Action, UnknownActionError};
pub use catalog::{Collision, Offer, claimed_names, compile_schemas, offering, resolve_collisions};
pub use docs_page::docs_page;
pub use folder::{
    EntryKind, FOLDER_ENTRIES_MAX, FolderEntry, FolderError, FoundManifest, entries, find_manifest,
    read_manifest,
};
pub use ids::IdScheme;
pub use inspect::{Inspection, InspectionFinding, Severity, inspect};
pub use limits::RunLimits;
pub use manifest::{
    ActionRules, AsyncSupport, Condition, Dashboard, DashboardOf, Entrypoint, Example,
    ExampleUpdate, InlineVars, MANIFEST_BYTES_MAX, MANIFEST_FILES, Manifest, ManifestError,
    ManifestFinding, ManifestForm, NumberRange, OnLost, Parameter, PlanEntry, RangeBound,
    SecretRequirement, UpgradePolicy, ValidationPoint, ValueKind, ValueType, accepts,
    accepts_change, duration_text, has_template_syntax, is_ansible_key, may_be_evaluated,
    refuse_reserved, refuse_templates, with_defaults,
};
pub use pack::{
    FILE_LABEL, PACKED_BYTES_MAX, PackError, PackOptions, PackedImage, RUNTIME_LABEL, SPEC_LABEL,
    pack,
};
pub use scaffold::{NewFile, Template, scaffold};
pub use schema::{Dialect, schema};
pub use sutler_osb::check_json_text;
pub use upgrade::{UpgradeError, UpgradePath, check_upgrade};
