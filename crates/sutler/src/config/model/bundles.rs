//! Bundles: their folders, the limits of their runs, and secrets of the operator for them.

use crate::config::secret::SecretSource;
use crate::config::value_types::{ByteSize, DurationText, FilePath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Services offered by bundles, in place of a catalog.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Bundles")]
pub struct BundlesConfig {
    /// A bundle, or a folder that has bundles as its sub-folders. What changes in it is offered without a
    /// restart; instances keep the version that made them.
    pub folder: Option<FilePath>,
    /// More such folders. Of two bundles that collide the first stays.
    pub folders: Vec<FilePath>,
    /// Where runs, and copies of the versions of bundles, are kept. It belongs to one broker on one host.
    pub work: FilePath,
    /// How often folders are looked at.
    pub look_every: DurationText,
    /// The number of the user that runs are, where the broker is root; each has its own if none is given.
    pub user: Option<u32>,
    /// The number of the group that runs are; the user's number if none is given.
    pub group: Option<u32>,
    /// The most that a run may use, whatever its manifest says.
    pub limits: RunLimits,
    /// The engine that runs bundles that are images. Without it they cannot be run.
    pub container: Option<ContainerEngineConfig>,
    /// What the operator keeps for bundles.
    pub secrets: Vec<BundleSecret>,
    /// What Automation Broker did and bundles need no more.
    pub compat: BundleCompat,
}

impl Default for BundlesConfig {
    fn default() -> Self {
        Self {
            folder: None,
            folders: Vec::new(),
            work: FilePath("sutler-bundles".into()),
            look_every: DurationText::seconds(1),
            user: None,
            group: None,
            limits: RunLimits::default(),
            container: None,
            secrets: Vec::new(),
            compat: BundleCompat::default(),
        }
    }
}

impl BundlesConfig {
    /// All folders, in their order.
    pub fn all_folders(&self) -> impl Iterator<Item = &FilePath> {
        self.folder.iter().chain(&self.folders)
    }
}

/// The most that a run may use.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunLimits {
    /// How long it may take.
    pub deadline: DurationText,
    /// Memory.
    pub memory: ByteSize,
    /// Output that is kept; what comes after it is cut.
    pub output: ByteSize,
    /// Open files of one process.
    pub open_files: u64,
    /// Processes.
    pub processes: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            deadline: DurationText::seconds(24 * 3600),
            memory: ByteSize(4 << 30),
            output: ByteSize(4 << 20),
            open_files: 65_536,
            processes: 4_096,
        }
    }
}

/// A container engine with Docker's API, such as Podman, on this host.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Engine")]
pub struct ContainerEngineConfig {
    /// Its socket, such as `/run/podman/podman.sock`.
    pub socket: FilePath,
    /// What containers can reach.
    #[serde(default)]
    pub network: RunNetwork,
    /// Registries that ask who wants an image.
    #[serde(default)]
    pub logins: Vec<ImageLogin>,
}

/// What containers can reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunNetwork {
    /// Nothing.
    None,
    /// What the engine's own network reaches.
    #[default]
    Bridge,
    /// What the host reaches.
    Host,
}

/// Who asks a registry for images.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageLogin {
    /// The registry's host, and its port where there is one, as in the names of its images.
    pub registry: String,
    /// The user.
    pub user: String,
    /// The password or token.
    pub password: SecretSource,
}

/// A secret for bundles: given to their runs as variables and as files, and shown nowhere.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundleSecret {
    /// Its name, as a bundle asks for it.
    pub name: String,
    /// The bundles that get it, by name; all that ask for it, if none is named.
    #[serde(default)]
    pub bundles: Vec<String>,
    /// What is in it.
    pub keys: Vec<SecretKey>,
}

/// One value of a secret.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretKey {
    /// The variable's name. A parameter of that name is not asked of users.
    pub key: String,
    /// The value.
    pub value: SecretSource,
}

/// What Automation Broker did. If any of it is wanted, `POST /v2/bootstrap` asks registries, as it did there.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BundleCompat {
    /// The name of the registry that ids were made of there: bundles then have its ids, its draft of JSON
    /// Schema and its forms. Instances that it made need them.
    pub registry: Option<String>,
    /// Whether every binding gets what the provision gave, and no bundle is asked for a binding.
    pub share_provision_credentials: bool,
    /// Whether developers may push services: `POST /v2/apb` and `DELETE /v2/apb`. Every user
    /// who may request a service can then run any image, so this is for development only.
    pub dev_broker: bool,
}

impl BundleCompat {
    /// Whether anything of it is wanted.
    pub fn is_on(&self) -> bool {
        self.registry.is_some() || self.share_provision_credentials || self.dev_broker
    }
}
