//! Certificates for one server and its clients, created for one test.

use crate::ServerDir;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

/// Paths of the certificate of an authority, and of a certificate with its key for both sides.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// Certificate of the authority.
    pub authority: String,
    /// Certificate for 127.0.0.1 and localhost, and for clients.
    pub certificate: String,
    /// Key of the certificate.
    pub key: String,
    /// Certificate and key in one file, which some servers require.
    pub both: String,
}

impl Certificates {
    /// Creates them in the directory of a server.
    ///
    /// # Panics
    /// If they cannot be created.
    #[must_use]
    pub fn write(dir: &ServerDir) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate().expect("a key");
        let authority = params.self_signed(&key).expect("a certificate").pem();
        let issuer = Issuer::new(params, key);
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("parameters");
        params.distinguished_name = DistinguishedName::new();
        // etcd's gateway is a client of its own server.
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &issuer).expect("a certificate");
        let (certificate, key) = (certificate.pem(), key.serialize_pem());
        Self {
            authority: dir.private("ca.pem", &authority),
            certificate: dir.private("cert.pem", &certificate),
            key: dir.private("key.pem", &key),
            both: dir.private("both.pem", &format!("{certificate}{key}")),
        }
    }
}
