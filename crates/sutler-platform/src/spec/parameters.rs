//! Parameters of an instance, and changes of them.
//!
//! Parameters have no `null` members. A change is a JSON merge patch (RFC 7396), in which `null` means "remove", so no
//! patch can set a member to `null`; with such members some parameters could not be reached by any change. A member
//! that is `null` therefore means the same as none, and is left out when [`Parameters`] are built. Inside arrays `null`
//! stays: a merge patch replaces an array as a whole.
//!
//! Both types may hold secrets, so `Debug` shows nothing of them. Whether parameters fit a plan is not known here.

use super::{json_pointer, merge_patch};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Deepest nesting of objects and arrays. JSON is read to a depth of 128, and the documents that hold parameters must
/// stay readable.
pub const PARAMETERS_DEPTH_MAX: usize = 64;
/// Longest paths of all leaves together, in bytes: below one long key many short ones would make many long paths.
pub const PATHS_BYTES_MAX: usize = 1024 * 1024;

/// An object that is too large to be worked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// Deeper than [`PARAMETERS_DEPTH_MAX`].
    #[error("parameters must not be nested deeper than {PARAMETERS_DEPTH_MAX} levels")]
    TooDeep,
    /// More than [`PATHS_BYTES_MAX`].
    #[error(
        "the keys of parameters are too long for their number: all paths together must not exceed {PATHS_BYTES_MAX} bytes"
    )]
    PathsTooLong,
}

/// Parameters without `null` members, except inside arrays.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct Parameters(Map<String, Value>);

/// A merge patch of parameters, in which `null` removes.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct ParametersPatch(Map<String, Value>);

impl Parameters {
    /// Leaves out `null` members. Checks no bounds: `try_from` does, for objects from outside.
    #[must_use]
    pub fn new(mut object: Map<String, Value>) -> Self {
        remove_nulls(&mut object);
        Self(object)
    }

    /// The object.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Applies a patch in place.
    pub(super) fn merge(&mut self, patch: &ParametersPatch) {
        merge_patch::apply(&mut self.0, &patch.0);
    }

    /// The smallest patch that makes `to` of these.
    pub(super) fn diff(&self, to: &Self) -> ParametersPatch {
        ParametersPatch(merge_patch::diff(&self.0, &to.0))
    }
}

impl ParametersPatch {
    /// Every object is a patch. Checks no bounds: `try_from` does, for objects from outside.
    #[must_use]
    pub fn new(object: Map<String, Value>) -> Self {
        Self(object)
    }

    /// The object.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Whether it changes nothing, whatever it is applied to.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One patch with the effect of this and a later one; `None` if there is none ([`merge_patch::compose`]).
    pub(super) fn then(&self, later: &Self) -> Option<Self> {
        merge_patch::compose(&self.0, &later.0).map(Self)
    }
}

impl TryFrom<Map<String, Value>> for Parameters {
    type Error = ParametersError;

    fn try_from(object: Map<String, Value>) -> Result<Self, ParametersError> {
        check_bounds(&object)?;
        Ok(Self::new(object))
    }
}

impl TryFrom<Map<String, Value>> for ParametersPatch {
    type Error = ParametersError;

    fn try_from(object: Map<String, Value>) -> Result<Self, ParametersError> {
        check_bounds(&object)?;
        Ok(Self::new(object))
    }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parameters(…)")
    }
}

impl fmt::Debug for ParametersPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParametersPatch(…)")
    }
}

fn remove_nulls(object: &mut Map<String, Value>) {
    object.retain(|_, value| !value.is_null());
    for value in object.values_mut() {
        if let Value::Object(inside) = value {
            remove_nulls(inside);
        }
    }
}

fn check_bounds(object: &Map<String, Value>) -> Result<(), ParametersError> {
    let mut paths_bytes = 0;
    check_object(object, 1, 0, &mut paths_bytes)?;
    if paths_bytes > PATHS_BYTES_MAX {
        return Err(ParametersError::PathsTooLong);
    }
    Ok(())
}

/// Checks the depth, and adds up the paths of the leaves below a path of `above` bytes, without escapes.
fn check_object(
    object: &Map<String, Value>,
    depth: usize,
    above: usize,
    paths_bytes: &mut usize,
) -> Result<(), ParametersError> {
    check_depth(depth)?;
    for (key, value) in object {
        let path = above + 1 + key.len();
        match json_pointer::members(value) {
            Some(inside) => check_object(inside, depth + 1, path, paths_bytes)?,
            None => {
                *paths_bytes += path;
                check_leaf(value, depth + 1)?;
            }
        }
    }
    Ok(())
}

/// Checks the depth of an array and of all inside it; paths end there.
fn check_leaf(value: &Value, depth: usize) -> Result<(), ParametersError> {
    match value {
        Value::Array(items) => {
            check_depth(depth)?;
            items
                .iter()
                .try_for_each(|item| check_leaf(item, depth + 1))
        }
        Value::Object(object) => {
            check_depth(depth)?;
            object
                .values()
                .try_for_each(|item| check_leaf(item, depth + 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn check_depth(depth: usize) -> Result<(), ParametersError> {
    if depth > PARAMETERS_DEPTH_MAX {
        return Err(ParametersError::TooDeep);
    }
    Ok(())
}
