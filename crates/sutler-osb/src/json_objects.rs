//! The opaque JSON objects of OSB: `parameters`, `context` and `credentials`.
//!
//! Each has its own type, so that they cannot be confused and secrets are not printed by accident:
//! `Debug` of parameters and credentials shows only `…`.

use crate::serde_optional;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::fmt;

macro_rules! json_object {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Default, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub struct $name(pub Map<String, Value>);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                serde_optional::required(deserializer).map(Self)
            }
        }

        impl From<Map<String, Value>> for $name {
            fn from(map: Map<String, Value>) -> Self {
                Self(map)
            }
        }
    };
}

json_object!(
    /// Parameters of the user beyond the plan; may hold secrets.
    Parameters
);
json_object!(
    /// Origin of the request on the platform (namespace, space, names).
    Context
);
json_object!(
    /// Credentials with which an application reaches the service. Secret.
    Credentials
);

impl Context {
    /// The platform's name, which every context contains (P-030).
    pub fn platform(&self) -> Option<&str> {
        self.0.get("platform").and_then(Value::as_str)
    }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parameters(…)")
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.0).finish()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
