//! What the model broker has: instances with bindings and operations in progress. Pure.

use super::model_broker::updated;
use serde_json::Value;
use std::collections::BTreeMap;

/// Something at the broker.
#[derive(Clone, Debug)]
pub(crate) struct ModelResource {
    /// Offering, plan and parameters with which it was created: the same create again is no conflict.
    pub created_with: Value,
    /// Offering, plan and parameters that it has now.
    pub attributes: Value,
    /// What the broker does in the background.
    pub operation: Option<ModelOperation>,
    /// How its last operation ended, if it did.
    pub last: Option<(String, bool)>,
    /// Its create failed, and it was left.
    pub is_broken: bool,
}

/// Work in the background.
#[derive(Clone, Debug)]
pub(crate) struct ModelOperation {
    pub token: String,
    pub work: ModelWork,
    /// Polls until it ends.
    pub polls_left: u64,
    pub succeeds: bool,
    /// Whether a create that fails leaves the resource.
    pub leaves: bool,
}

/// What is done in the background.
#[derive(Clone, Debug)]
pub(crate) enum ModelWork {
    Create,
    /// With the body of the request.
    Update(Value),
    Delete,
}

/// An instance with its bindings.
#[derive(Clone, Debug)]
pub(crate) struct ModelInstance {
    pub resource: ModelResource,
    pub bindings: BTreeMap<String, ModelResource>,
}

/// How a poll found an operation.
pub(crate) enum PolledOperation {
    InProgress,
    Ended { succeeded: bool, removes: bool },
}

impl ModelResource {
    pub(crate) fn created(attributes: Value) -> Self {
        Self {
            created_with: attributes.clone(),
            attributes,
            operation: None,
            last: None,
            is_broken: false,
        }
    }

    /// Polls: the operation in progress comes closer to its end.
    pub(crate) fn poll(&mut self) -> PolledOperation {
        let Some(operation) = &mut self.operation else {
            let succeeded = self.last.as_ref().is_none_or(|(_, succeeded)| *succeeded);
            return PolledOperation::Ended {
                succeeded,
                removes: false,
            };
        };
        if operation.polls_left > 0 {
            operation.polls_left -= 1;
            return PolledOperation::InProgress;
        }
        self.end_operation()
    }

    /// Ends the operation in progress at once.
    fn end_operation(&mut self) -> PolledOperation {
        let Some(operation) = self.operation.take() else {
            return PolledOperation::InProgress;
        };
        let succeeded = operation.succeeds;
        let removes = match operation.work {
            ModelWork::Create if !succeeded => {
                self.is_broken = true;
                !operation.leaves
            }
            ModelWork::Update(update) => {
                if succeeded {
                    self.attributes = updated(&self.attributes, &update);
                }
                false
            }
            ModelWork::Delete => succeeded,
            ModelWork::Create => false,
        };
        self.last = Some((operation.token, succeeded));
        PolledOperation::Ended { succeeded, removes }
    }
}
