//! Callers by client certificate: names in the certificate that are on a list.
//!
//! TLS has verified the certificate before (`server/tls.rs`). Only its names are read here.

use super::config_error::AuthConfigError;
use super::{AuthMethod, Caller};
use crate::server::PeerCertificate;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A name in a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CertificateName {
    Uri(String),
    Dns(String),
    CommonName(String),
}

/// Accepted names in certificates, each with the name of its caller.
#[derive(Clone, Default)]
pub struct Certificates(HashMap<CertificateName, Arc<str>>);

impl Certificates {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts certificates with this URI among their alternative names, such as a SPIFFE id.
    ///
    /// # Errors
    /// The name is empty, or already on the list.
    pub fn uri(self, uri: &str, caller: &str) -> Result<Self, AuthConfigError> {
        self.with(CertificateName::Uri(uri.to_owned()), uri, caller)
    }

    /// Accepts certificates with this host name among their alternative names. A wildcard in a certificate matches
    /// nothing.
    ///
    /// # Errors
    /// The name is empty, or already on the list.
    pub fn dns(self, host: &str, caller: &str) -> Result<Self, AuthConfigError> {
        let lower = host.to_ascii_lowercase();
        self.with(CertificateName::Dns(lower), host, caller)
    }

    /// Accepts certificates with this common name.
    ///
    /// # Errors
    /// The name is empty, or already on the list.
    pub fn common_name(self, name: &str, caller: &str) -> Result<Self, AuthConfigError> {
        self.with(CertificateName::CommonName(name.to_owned()), name, caller)
    }

    fn with(
        mut self,
        key: CertificateName,
        name: &str,
        caller: &str,
    ) -> Result<Self, AuthConfigError> {
        let usable = !name.is_empty() && !caller.is_empty() && !name.contains('*');
        if !usable || self.0.insert(key, caller.into()).is_some() {
            return Err(AuthConfigError::CertificateName(name.to_owned()));
        }
        Ok(self)
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Caller of a certificate: the first of its names that is on the list, URIs first.
    pub(super) fn admit(&self, certificate: &PeerCertificate) -> Option<Caller> {
        let (_, read) = X509Certificate::from_der(certificate.der()).ok()?;
        let mut names = Vec::new();
        if let Ok(Some(alternative)) = read.subject_alternative_name() {
            for name in &alternative.value.general_names {
                match name {
                    GeneralName::URI(uri) => names.push(CertificateName::Uri((*uri).to_owned())),
                    GeneralName::DNSName(host) => {
                        names.push(CertificateName::Dns(host.to_ascii_lowercase()));
                    }
                    _ => {}
                }
            }
        }
        names.sort_by_key(|it| !matches!(it, CertificateName::Uri(_)));
        let common = read.subject().iter_common_name();
        let common = common.filter_map(|it| it.as_str().ok());
        names.extend(common.map(|it| CertificateName::CommonName(it.to_owned())));
        let name = names.iter().find_map(|it| self.0.get(it))?.clone();
        Some(Caller::named(name, AuthMethod::Certificate))
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Certificates;
    use crate::server::PeerCertificate;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    fn certificate(common: &str, alternatives: Vec<SanType>) -> PeerCertificate {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.subject_alt_names = alternatives;
        params.distinguished_name.push(DnType::CommonName, common);
        let der = params
            .self_signed(&key)
            .expect("a certificate")
            .der()
            .to_vec();
        PeerCertificate::of(&der.into())
    }

    fn uri(text: &str) -> SanType {
        SanType::URI(text.try_into().expect("ASCII"))
    }

    fn dns(text: &str) -> SanType {
        SanType::DnsName(text.try_into().expect("ASCII"))
    }

    fn list() -> Certificates {
        Certificates::new()
            .uri("spiffe://house/cf", "cf")
            .and_then(|it| it.dns("Platform.example", "platform"))
            .and_then(|it| it.common_name("old", "old platform"))
            .expect("a list")
    }

    fn caller(certificate: &PeerCertificate) -> Option<String> {
        list().admit(certificate).map(|it| it.name.to_string())
    }

    #[test]
    fn a_listed_name_of_any_kind_is_accepted() {
        let spiffe = certificate("x", vec![dns("platform.example"), uri("spiffe://house/cf")]);
        assert_eq!(caller(&spiffe).as_deref(), Some("cf"));
        let host = certificate("old", vec![dns("PLATFORM.example")]);
        assert_eq!(caller(&host).as_deref(), Some("platform"));
        let common = certificate("old", Vec::new());
        assert_eq!(caller(&common).as_deref(), Some("old platform"));
    }

    #[test]
    fn other_names_and_names_of_another_kind_are_refused() {
        for (common, alternatives) in [
            ("cf", vec![uri("spiffe://house/other")]),
            ("spiffe://house/cf", vec![dns("*.example")]),
            ("platform.example", vec![dns("x.platform.example")]),
            ("OLD", vec![dns("old")]),
        ] {
            assert_eq!(caller(&certificate(common, alternatives)), None, "{common}");
        }
        let nonsense = PeerCertificate::of(&b"no certificate".as_slice().into());
        assert_eq!(caller(&nonsense), None);
    }

    #[test]
    fn invalid_and_duplicate_names_are_refused() {
        assert!(Certificates::new().dns("", "x").is_err());
        assert!(Certificates::new().dns("*.example", "x").is_err());
        assert!(Certificates::new().common_name("x", "").is_err());
        assert!(list().uri("spiffe://house/cf", "again").is_err());
    }
}
