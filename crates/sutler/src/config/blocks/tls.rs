//! TLS block: the files of a certificate, and the requirements for client certificates.

use crate::config::findings::CheckFindings;
use crate::config::value_types::FilePath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sutler_server::{ClientCertificates, Tls};

/// Certificate and key, and what is asked of clients.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Tls")]
pub struct TlsConfig {
    /// The certificate, in PEM, followed by those that lead to its root. Read again at a reload.
    pub certificate: Option<FilePath>,
    /// The certificate's private key, in PEM. Read again at a reload.
    pub key: Option<FilePath>,
    /// Certificates, in PEM, that a client's certificate must descend from.
    pub client_ca: Option<FilePath>,
    /// Whether clients must have a certificate; needs `client_ca`.
    pub client_auth: ClientAuth,
}

/// Whether clients must have a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// They are not asked.
    #[default]
    None,
    /// They are asked, and need not have one.
    Optional,
    /// Without one they are not connected.
    Required,
}

impl TlsConfig {
    /// Checks that certificate and key, and client authentication and its authority, go together.
    pub(in crate::config) fn check(&self, path: &str, findings: &mut CheckFindings) {
        match (&self.certificate, &self.key) {
            (Some(_), Some(_)) => {}
            (Some(_), None) => findings.fault(path, "has a certificate, but no `key`: give both"),
            (None, Some(_)) => findings.fault(path, "has a key, but no `certificate`: give both"),
            (None, None) => findings.fault(path, "needs `certificate` and `key`"),
        }
        match (self.client_auth, &self.client_ca) {
            (ClientAuth::Optional | ClientAuth::Required, None) => {
                let reason = "needs `client_ca`, to know which certificates to trust";
                findings.fault(format!("{path}.client_auth"), reason);
            }
            (ClientAuth::None, Some(_)) => {
                let reason =
                    "means nothing while `client_auth` is `none`; say `optional` or `required`";
                findings.fault(format!("{path}.client_ca"), reason);
            }
            (ClientAuth::None, None) | (ClientAuth::Optional | ClientAuth::Required, Some(_)) => {}
        }
    }

    /// The files that must be readable, with their paths.
    pub(in crate::config) fn files(&self, path: &str) -> impl Iterator<Item = (String, &FilePath)> {
        let named = [
            ("certificate", &self.certificate),
            ("key", &self.key),
            ("client_ca", &self.client_ca),
        ];
        named
            .into_iter()
            .filter_map(move |(key, file)| Some((format!("{path}.{key}"), file.as_ref()?)))
    }

    /// Converts the block into the certificate files of the server; `None` without a certificate.
    pub fn resolve(&self) -> Option<Tls> {
        let (FilePath(certificate), FilePath(key)) =
            self.certificate.as_ref().zip(self.key.as_ref())?;
        let files = Tls::files(certificate, key);
        let clients = match self.client_auth {
            ClientAuth::None => return Some(files),
            ClientAuth::Optional => ClientCertificates::Optional,
            ClientAuth::Required => ClientCertificates::Required,
        };
        match &self.client_ca {
            Some(FilePath(authorities)) => Some(files.client_ca(authorities, clients)),
            None => Some(files),
        }
    }
}
