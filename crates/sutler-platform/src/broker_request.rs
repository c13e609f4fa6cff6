//! What is sent to a broker for one intent: body, context, originating identity, and the ids of deletes and polls.
//!
//! Pure: the caller resolves secrets, reads the namespace, and passes the state before and after the intent. The bytes
//! of the request are made by `sutler-client`; nothing is sent here. P-lines count what the specification demands of
//! platforms, D-lines are in `docs/DECISIONS.md`, T-lines and I-lines in `docs/platform-rules.md`.
//!
//! Reading order: `profile.rs` (where a request comes from), `originating_identity.rs` (who caused it),
//! `resolved_parameters.rs` (parameters with those of secrets), `parameter_difference.rs` (what of them an update
//! sends), `instance.rs` and `binding.rs` (the bodies).

mod binding;
mod instance;
mod originating_identity;
mod parameter_difference;
mod profile;
mod resolved_parameters;

#[cfg(test)]
mod tests;

pub use binding::{BindRequest, BindTarget, Predecessor, bind_body, unbind_ids};
pub use instance::{
    ContextUpdates, InstanceValues, UpdateKind, UpdateOutcome, UpdateRequest, instance_ids,
    provision_body, update_body,
};
pub use originating_identity::{
    AuthorIdentityError, RequestCause, check_author, originating_identity,
};
pub use parameter_difference::{ResentField, UpdateParameters};
pub use profile::{
    ANNOTATIONS_BYTES_MAX, Annotations, AnnotationsTooLargeError, CloudFoundryEntity,
    CloudFoundryLocation, Namespace, NamespaceContext, NamespaceProfileError, Profile,
};
pub use resolved_parameters::{
    ParameterOrigin, ParameterResolutionError, RESOLVED_PARAMETERS_BYTES_MAX, SecretContent,
    SecretReference, resolve_parameters,
};
