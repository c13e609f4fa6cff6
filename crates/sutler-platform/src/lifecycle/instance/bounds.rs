//! How much an instance may hold, so that every answer of its broker can be written down: a commit has at most 1 MB.
//!
//! Everything is checked when it is accepted. What is only history can be left out when there is no room even so.

use crate::lifecycle::instance::{
    AUTHORS_BYTES_MAX, Instance, InstanceEventError, LABELS_BYTES_MAX, PARAMETERS_BYTES_MAX,
};
use crate::preflight::Violation;
use crate::spec::Spec;
use serde::Serialize;

/// Refuses a specification that is too large to be kept.
pub(super) fn check_size(spec: &Spec) -> Result<(), InstanceEventError> {
    let parameters = (spec.parameters.as_map(), &spec.parameter_sources);
    let parts = [
        ("/parameters", byte_len(&parameters), PARAMETERS_BYTES_MAX),
        ("/labels", byte_len(&spec.labels), LABELS_BYTES_MAX),
        (
            "/annotations",
            byte_len(&spec.annotations),
            LABELS_BYTES_MAX,
        ),
    ];
    let too_large = parts.into_iter().filter(|(_, bytes, max)| bytes > max);
    let violations: Vec<_> = too_large
        .map(|(pointer, _, max)| Violation {
            pointer: pointer.to_owned(),
            sentence: format!("together they have at most {max} bytes of JSON"),
            rule: "size",
        })
        .collect();
    match violations.is_empty() {
        true => Ok(()),
        false => Err(InstanceEventError::Violations(violations)),
    }
}

/// Size of the JSON of a value.
pub(super) fn byte_len(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |json| json.len())
}

impl Instance {
    /// Whether there is room for another pending intent of this author. Each intent keeps its own copy.
    pub(super) fn has_room_for(&self, author: &crate::author::Author) -> bool {
        let authors = self.pending.iter().map(|it| byte_len(&it.author));
        let bytes = authors.fold(byte_len(author), usize::saturating_add);
        bytes <= AUTHORS_BYTES_MAX
    }

    /// Leaves out what only comparisons with the past need: earlier revisions, ended intents but the last one, and what
    /// managers applied. The journal has the intents still.
    pub(crate) fn forget_history(&mut self) {
        self.revisions.clear();
        self.managers.clear();
        let surplus = self.ended.len().saturating_sub(1);
        self.ended.drain(..surplus);
        if let Some(last) = self.ended.back_mut() {
            last.undo = None;
        }
    }
}
