//! An asynchronous operation in progress, and its poll request.

use crate::wire::{Method, Request};
use sutler_osb::{BindingId, InstanceId, OperationKind, OperationToken, PlanId, ServiceId};

/// The service offering and the plan that a resource belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlanIds {
    /// The service offering.
    pub service_id: ServiceId,
    /// Its plan.
    pub plan_id: PlanId,
}

impl PlanIds {
    /// Puts both ids into a query.
    pub(crate) fn query(&self, request: Request) -> Request {
        request
            .query(ServiceId::FIELD, self.service_id.as_str())
            .query(PlanId::FIELD, self.plan_id.as_str())
    }
}

/// Target of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum PolledResource {
    Instance(InstanceId),
    Binding(InstanceId, BindingId),
}

/// An operation that a 202 began.
///
/// A poll carries exactly the `operation` of the 202 (P-052), and the service and plan that the
/// resource had *before* it (P-053): after a change of plan that is the old one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    kind: OperationKind,
    resource: PolledResource,
    offered: PlanIds,
    token: Option<OperationToken>,
}

impl Operation {
    /// A provision in progress.
    pub fn provision(
        instance: InstanceId,
        offered: PlanIds,
        token: Option<OperationToken>,
    ) -> Self {
        Self::of_instance(OperationKind::Provision, instance, offered, token)
    }

    /// An update in progress; `before`: the service and plan of the instance when it was sent.
    pub fn update(instance: InstanceId, before: PlanIds, token: Option<OperationToken>) -> Self {
        Self::of_instance(OperationKind::Update, instance, before, token)
    }

    /// A deprovision in progress.
    pub fn deprovision(
        instance: InstanceId,
        offered: PlanIds,
        token: Option<OperationToken>,
    ) -> Self {
        Self::of_instance(OperationKind::Deprovision, instance, offered, token)
    }

    /// A bind or rotation in progress.
    pub fn bind(
        instance: InstanceId,
        binding: BindingId,
        offered: PlanIds,
        token: Option<OperationToken>,
    ) -> Self {
        Self {
            kind: OperationKind::Bind,
            resource: PolledResource::Binding(instance, binding),
            offered,
            token,
        }
    }

    /// An unbind in progress.
    pub fn unbind(
        instance: InstanceId,
        binding: BindingId,
        offered: PlanIds,
        token: Option<OperationToken>,
    ) -> Self {
        Self {
            kind: OperationKind::Unbind,
            resource: PolledResource::Binding(instance, binding),
            offered,
            token,
        }
    }

    fn of_instance(
        kind: OperationKind,
        instance: InstanceId,
        offered: PlanIds,
        token: Option<OperationToken>,
    ) -> Self {
        Self {
            kind,
            resource: PolledResource::Instance(instance),
            offered,
            token,
        }
    }

    /// Kind of the operation.
    pub fn kind(&self) -> OperationKind {
        self.kind
    }

    /// The service and plan that polls name.
    pub fn offered(&self) -> &PlanIds {
        &self.offered
    }

    /// The instance, and the binding if the operation is about one.
    pub fn ids(&self) -> (&InstanceId, Option<&BindingId>) {
        match &self.resource {
            PolledResource::Instance(instance) => (instance, None),
            PolledResource::Binding(instance, binding) => (instance, Some(binding)),
        }
    }

    /// The poll request.
    pub(crate) fn request(&self) -> Request {
        let (instance, binding) = self.ids();
        let mut request = resource(Method::Get, instance, binding);
        request.path.push("last_operation".to_owned());
        let request = self.offered.query(request);
        match &self.token {
            Some(token) => request.query(OperationToken::FIELD, token.as_str()),
            None => request,
        }
    }
}

/// A request about an instance or a binding.
pub(crate) fn resource(
    method: Method,
    instance: &InstanceId,
    binding: Option<&BindingId>,
) -> Request {
    let path = ["v2", "service_instances", instance.as_str()];
    let mut request = Request::new(method, &path);
    if let Some(binding) = binding {
        let rest = ["service_bindings", binding.as_str()];
        request.path.extend(rest.map(str::to_owned));
    }
    request
}

#[cfg(test)]
mod tests {
    use super::{Operation, PlanIds};

    fn offered(plan: &str) -> PlanIds {
        PlanIds {
            service_id: "s".try_into().expect("an id"),
            plan_id: plan.try_into().expect("an id"),
        }
    }

    /// Holds: P-052, P-053.
    #[test]
    fn a_poll_carries_the_unchanged_operation_and_the_previous_plan() {
        let token = "a/b &=?#%+ä".try_into().expect("a token");
        let update = Operation::update("i".try_into().expect("an id"), offered("old"), Some(token));
        assert_eq!(
            update.request().target(),
            "/v2/service_instances/i/last_operation?service_id=s&plan_id=old\
             &operation=a%2Fb%20%26%3D%3F%23%25%2B%C3%A4"
        );
    }

    /// Holds: P-052.
    #[test]
    fn a_poll_after_a_202_without_an_operation_has_no_operation() {
        let (instance, binding) = (
            "i".try_into().expect("an id"),
            "b".try_into().expect("an id"),
        );
        let bind = Operation::bind(instance, binding, offered("p"), None);
        assert_eq!(
            bind.request().target(),
            "/v2/service_instances/i/service_bindings/b/last_operation?service_id=s&plan_id=p"
        );
    }
}
