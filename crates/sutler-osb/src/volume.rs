//! Volume mounts of a binding (B-194).
//!
//! Shapes only; whether the offering `requires` volume mounts is checked by its broker.

use crate::non_empty_text::NonEmptyText;
use crate::serde_optional;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A volume that the platform mounts into the application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeMount {
    /// The platform's driver that does the mounting.
    pub driver: NonEmptyText,
    /// The directory inside the container.
    pub container_dir: NonEmptyText,
    /// Read only, or read and write.
    pub mode: VolumeMode,
    /// The kind of device; only one is defined.
    pub device_type: DeviceType,
    /// The device.
    #[serde(deserialize_with = "serde_optional::required")]
    pub device: Device,
}

/// Access mode of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum VolumeMode {
    /// Read.
    #[serde(rename = "r")]
    ReadOnly,
    /// Read and write.
    #[serde(rename = "rw")]
    ReadWrite,
}

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceType {
    /// A distributed file system that several applications can mount at once.
    Shared,
}

/// A shared device. `Debug` hides the mount configuration: it may hold passwords.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The volume to mount.
    pub volume_id: NonEmptyText,
    /// Options for the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_config: Option<Map<String, Value>>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({} …)", self.volume_id)
    }
}
