//! Bundles over a store on a server.

use super::Sort;
use crate::bundle_lifecycle;

/// An earlier store lost the relation between a binding and its instance.
///
/// Regression: R13.
pub(super) fn a_binding_of_a_bundle_is_unbound_and_its_instance_deprovisioned(sort: &Sort) {
    let Some(server) = (sort.shared)() else {
        return;
    };
    let place = server.fresh_database();
    bundle_lifecycle::unbinds_and_deprovisions(&format!(
        "{{url: '{}', key_file: store.key}}",
        place.url()
    ));
}
