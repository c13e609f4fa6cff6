//! The entity tag of a resource: its uid and its revision. So a tag never holds for a later resource of the same name.

use crate::lifecycle::instance::Instance;
use crate::records::BrokerRegistration;
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// An entity tag, without its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntityTag {
    /// The resource.
    pub uid: Uuid,
    /// Its revision.
    pub revision: u64,
}

/// It is not a tag that the API wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntityTagError;

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.uid, self.revision)
    }
}

impl FromStr for EntityTag {
    type Err = EntityTagError;

    fn from_str(text: &str) -> Result<Self, EntityTagError> {
        let (uid, revision) = text.split_once('.').ok_or(EntityTagError)?;
        Ok(Self {
            uid: Uuid::try_parse(uid).map_err(|_| EntityTagError)?,
            revision: revision.parse().map_err(|_| EntityTagError)?,
        })
    }
}

/// The tag of an instance.
pub(crate) fn tag_of_instance(instance: &Instance) -> EntityTag {
    EntityTag {
        uid: instance.uid,
        revision: instance.revision,
    }
}

/// The tag of a broker.
pub(crate) fn tag_of_broker(registration: &BrokerRegistration) -> EntityTag {
    EntityTag {
        uid: registration.uid,
        revision: registration.revision,
    }
}
