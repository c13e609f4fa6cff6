//! The wrapper of every stored document: absent, present, or written by a newer version of the platform.
//!
//! Stored as `{"form": 1, …}`. A replica that meets a newer form neither writes nor fails it: it leaves the document to
//! the replicas that know it, so versions can be exchanged one replica at a time. What is inside is not known here.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sutler_journal::{Key, OperationId, StoreTime, Term};
use sutler_records::Resource;

/// The form that this version writes, and the newest that it reads.
pub const FORM: u32 = 1;

/// A stored document.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Record<T> {
    /// There is none.
    #[default]
    Absent,
    /// It can be read.
    Present(Box<T>),
    /// A newer version wrote it in this form.
    Newer(u32),
}

/// The contents of a kind of document.
pub trait TypedRecord: Serialize + DeserializeOwned + Clone + PartialEq + Send + 'static {
    /// Index terms.
    fn terms(&self) -> Vec<Term>;

    /// Terms that depend on the time of writing, by the store's clock.
    fn dated_terms(&self, _written: StoreTime) -> Vec<Term> {
        Vec::new()
    }

    /// Operations that must not be swept.
    fn referenced_operations(&self) -> Vec<OperationId> {
        Vec::new()
    }
}

impl<T> Record<T> {
    /// A document that can be read.
    pub fn of(contents: T) -> Self {
        Self::Present(Box::new(contents))
    }

    /// What is inside, if it can be read.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Present(contents) => Some(contents),
            Self::Absent | Self::Newer(_) => None,
        }
    }

    /// What is inside, if it can be read.
    pub fn into_inner(self) -> Option<T> {
        match self {
            Self::Present(contents) => Some(*contents),
            Self::Absent | Self::Newer(_) => None,
        }
    }

    /// Whether a newer version wrote it.
    pub fn is_newer(&self) -> bool {
        match self {
            Self::Newer(_) => true,
            Self::Absent | Self::Present(_) => false,
        }
    }
}

#[derive(Serialize)]
struct WrittenForm<'a, T> {
    form: u32,
    #[serde(flatten)]
    contents: &'a T,
}

/// The form alone: everything else belongs to it.
#[derive(Deserialize)]
struct FormNumber {
    form: u32,
}

impl<T: Serialize> Serialize for Record<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Present(contents) => WrittenForm {
                form: FORM,
                contents: contents.as_ref(),
            }
            .serialize(serializer),
            Self::Absent | Self::Newer(_) => Err(serde::ser::Error::custom(
                "only documents that can be read are written",
            )),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Record<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        let FormNumber { form } =
            FormNumber::deserialize(&value).map_err(serde::de::Error::custom)?;
        if form > FORM {
            return Ok(Self::Newer(form));
        }
        // Contents that are one of several kinds have a single member.
        if let Value::Object(members) = &mut value {
            members.remove("form");
        }
        let contents = T::deserialize(value).map_err(serde::de::Error::custom)?;
        Ok(Self::of(contents))
    }
}

impl<T: TypedRecord> Resource for Record<T> {
    fn terms(&self, _key: &Key) -> Vec<Term> {
        self.get().map(TypedRecord::terms).unwrap_or_default()
    }

    fn dated_terms(&self, written: StoreTime) -> Vec<Term> {
        let terms = self.get().map(|contents| contents.dated_terms(written));
        terms.unwrap_or_default()
    }

    fn referenced_operations(&self) -> Vec<OperationId> {
        let operations = self.get().map(TypedRecord::referenced_operations);
        operations.unwrap_or_default()
    }
}
