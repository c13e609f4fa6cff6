//! Certificate authorities for tests, and files of their certificates.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use std::path::{Path, PathBuf};

/// A certificate authority for tests.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(super) struct SignedCertificate {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// A certificate for a server name, or of a client of that name.
    pub(super) fn signs(&self, name: &str) -> SignedCertificate {
        self.signs_with(name, |_| {})
    }

    /// A certificate that expired years ago.
    pub(super) fn expired(&self, name: &str) -> SignedCertificate {
        self.signs_with(name, |params| {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        })
    }

    fn signs_with(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> SignedCertificate {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        change(&mut params);
        let signed = params.signed_by(&key, &self.issuer);
        SignedCertificate {
            certificate: signed.expect("a certificate").pem(),
            key: key.serialize_pem(),
        }
    }
}

/// Paths of a broker's files.
pub(super) struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder }
    }

    pub(super) fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    /// Writes a certificate and its key to the files of the broker.
    pub(super) fn put_both(&self, signed: &SignedCertificate) {
        self.put("tls.crt", &signed.certificate);
        self.put("tls.key", &signed.key);
    }
}
