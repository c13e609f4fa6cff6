//! Bundles over a store on a server.

use super::ServerKind;
use crate::bundle_lifecycle;

/// An earlier store lost the relation between a binding and its instance.
///
/// Regression: R13.
pub(super) fn a_binding_of_a_bundle_is_unbound_and_its_instance_deprovisioned(kind: &ServerKind) {
    let Some(server) = (kind.shared)() else {
        return;
    };
    let server_url = server.fresh_database();
    bundle_lifecycle::unbinds_and_deprovisions(&format!(
        "{{url: '{}', key_file: store.key}}",
        server_url.url()
    ));
}
