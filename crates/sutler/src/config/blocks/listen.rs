//! Listener block: the checks of an address to listen on. The type is [`HostPort`] (`value_types.rs`).

use crate::config::findings::CheckFindings;
use crate::config::value_types::HostPort;

/// Protection of the requests that arrive at a listener.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Exposure {
    /// Some path serves requests without authentication.
    pub(in crate::config) unauthenticated: bool,
    /// Connections are encrypted.
    pub(in crate::config) encrypted: bool,
}

/// Warns about a listener that other machines reach without authentication or without encryption.
pub(in crate::config) fn check_exposure(
    listen: &HostPort,
    exposure: Exposure,
    path: &str,
    findings: &mut CheckFindings,
) {
    if listen.is_loopback() {
        return;
    }
    if exposure.unauthenticated {
        let reason = "lets other machines in, and nobody is asked who they are";
        findings.warn(path, reason);
    } else if !exposure.encrypted {
        let reason = "lets other machines in, and passwords travel unencrypted: set `tls`, or \
                      put something in front that does";
        findings.warn(path, reason);
    }
}
