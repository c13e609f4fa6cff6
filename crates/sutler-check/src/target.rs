//! Target of a request: an instance or a binding whose id this check generated.

use crate::created::{BindingId, CreatedResource, InstanceId, Owner};
use sutler_client::wire::{Method, Request};

/// An instance or a binding of this check.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    Instance(&'a InstanceId),
    Binding(&'a BindingId),
}

impl<'a> Target<'a> {
    pub(crate) fn of(made: &'a CreatedResource) -> Self {
        match made {
            CreatedResource::Instance(id) => Self::Instance(id),
            CreatedResource::Binding(id) => Self::Binding(id),
        }
    }

    pub(crate) fn made(self) -> CreatedResource {
        match self {
            Self::Instance(id) => CreatedResource::Instance(id.clone()),
            Self::Binding(id) => CreatedResource::Binding(id.clone()),
        }
    }

    /// A request about it, without parameters.
    pub(crate) fn request(self, method: Method) -> Request {
        match self {
            Self::Instance(id) => Request::new(method, &["v2", "service_instances", id.as_str()]),
            Self::Binding(id) => Request::new(
                method,
                &[
                    "v2",
                    "service_instances",
                    id.instance.as_str(),
                    "service_bindings",
                    id.as_str(),
                ],
            ),
        }
    }

    /// A delete that names its service and plan.
    pub(crate) fn delete(self, owner: &Owner) -> Request {
        self.request(Method::Delete)
            .query("service_id", &owner.service_id)
            .query("plan_id", &owner.plan_id)
    }

    /// A poll with the hints of P-053 and, if there is one, the operation.
    pub(crate) fn poll(self, owner: &Owner, operation: Option<&str>) -> Request {
        let mut request = self.request(Method::Get);
        request.path.push("last_operation".to_owned());
        request = request
            .query("service_id", &owner.service_id)
            .query("plan_id", &owner.plan_id);
        match operation {
            Some(operation) => request.query("operation", operation),
            None => request,
        }
    }
}
