//! TLS: certificate, key and client authorities from PEM files, replaceable at run time.
//!
//! A file that cannot be used leaves the present configuration in force. Errors name the file and what to do, and never
//! quote its contents. Handshakes are in `server/connection.rs`; `auth/certificate.rs` maps client certificates to
//! callers.

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::{Error as PemError, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Maximum size of a PEM file, in bytes: a bundle of all public authorities is a quarter of that.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The files that TLS is served with.
#[derive(Clone, Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    clients: Option<(PathBuf, ClientCertificates)>,
}

/// Whether clients must present a certificate of the authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// A connection without one is refused.
    Required,
    /// A certificate that is presented must be valid; without one, the caller authenticates in another way.
    Optional,
}

impl Tls {
    /// Serves with a certificate, followed by its chain, and its private key, in PEM files.
    pub fn files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
            clients: None,
        }
    }

    /// Requests client certificates of the authorities in a PEM file.
    #[must_use]
    pub fn client_ca(mut self, file: impl Into<PathBuf>, clients: ClientCertificates) -> Self {
        self.clients = Some((file.into(), clients));
        self
    }

    /// Reads the files.
    ///
    /// # Errors
    /// One of them cannot be used.
    fn load(&self) -> Result<Arc<ServerConfig>, TlsConfigError> {
        let chain = certificates(&self.certificate)?;
        warn_if_out_of_date(&self.certificate, &chain);
        let key = private_key(&self.key)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|_| TlsConfigError::new(&self.certificate, TlsFileError::Unusable))?;
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some((file, demand)) => {
                let roots = Arc::new(authorities(file)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = match demand {
                    ClientCertificates::Required => verifier,
                    ClientCertificates::Optional => verifier.allow_unauthenticated(),
                };
                let built = verifier.build();
                let unusable = |_| TlsConfigError::new(file, TlsFileError::Unusable);
                builder.with_client_cert_verifier(built.map_err(unusable)?)
            }
        };
        let config = builder.with_single_cert(chain, key);
        let mut config = config.map_err(|error| self.refused(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// The error for a server that was started without TLS.
    #[must_use]
    pub fn not_served(&self) -> TlsConfigError {
        TlsConfigError::new(&self.certificate, TlsFileError::NotServed)
    }

    /// The error of rustls about certificate and key together, as ours.
    fn refused(&self, error: &rustls::Error) -> TlsConfigError {
        match error {
            rustls::Error::InconsistentKeys(_) => {
                let certificate = self.certificate.clone();
                TlsConfigError::new(&self.key, TlsFileError::OtherKey(certificate))
            }
            rustls::Error::InvalidCertificate(_) => {
                TlsConfigError::new(&self.certificate, TlsFileError::Unusable)
            }
            _ => TlsConfigError::new(&self.key, TlsFileError::Unusable),
        }
    }
}

/// A file that TLS cannot be served with.
#[derive(Debug, thiserror::Error)]
#[error("{}: {trouble}", file.display())]
pub struct TlsConfigError {
    /// The file.
    pub file: PathBuf,
    /// The problem with it.
    pub trouble: TlsFileError,
}

impl TlsConfigError {
    fn new(file: &Path, trouble: TlsFileError) -> Self {
        Self {
            file: file.to_owned(),
            trouble,
        }
    }
}

/// Problem with a TLS file, with advice.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    /// The file cannot be read.
    #[error("cannot be read ({0}); check the path and who may read it")]
    Unreadable(std::io::ErrorKind),
    /// The file is too large.
    #[error("is larger than {FILE_BYTES_MAX} bytes; is it the right file?")]
    TooLarge,
    /// The file is not in PEM format.
    #[error("is not a well-formed PEM file; it was cut off or is of another format")]
    NotPem,
    /// The file has no certificate.
    #[error("has no certificate in it; it must have a block BEGIN CERTIFICATE")]
    NoCertificate,
    /// The file has no private key.
    #[error(
        "has no private key in it; it must have a block BEGIN PRIVATE KEY, without a passphrase"
    )]
    NoKey,
    /// The key belongs to another certificate.
    #[error("is not the key of the certificate in {}; put files in place that belong together", .0.display())]
    OtherKey(PathBuf),
    /// The file cannot be used for another reason.
    #[error(
        "cannot be used; make it anew with a usual kind of key, such as ECDSA P-256 or RSA 2048"
    )]
    Unusable,
    /// The server was started without TLS.
    #[error("is not used, because the broker was started without TLS; start it again")]
    NotServed,
}

fn read(file: &Path) -> Result<Vec<u8>, TlsConfigError> {
    let unreadable =
        |error: std::io::Error| TlsConfigError::new(file, TlsFileError::Unreadable(error.kind()));
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let mut limited = opened.take(FILE_BYTES_MAX + 1);
    limited.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(TlsConfigError::new(file, TlsFileError::TooLarge));
    }
    Ok(bytes)
}

/// Messages of the library may quote the file, so they are dropped.
fn pem_fault(file: &Path, error: &PemError, missing: TlsFileError) -> TlsConfigError {
    match error {
        PemError::NoItemsFound => TlsConfigError::new(file, missing),
        _ => TlsConfigError::new(file, TlsFileError::NotPem),
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let bytes = read(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| pem_fault(file, &error, TlsFileError::NoCertificate))?;
    if found.is_empty() {
        return Err(TlsConfigError::new(file, TlsFileError::NoCertificate));
    }
    Ok(found)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsConfigError> {
    let bytes = zeroize::Zeroizing::new(read(file)?);
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|error| pem_fault(file, &error, TlsFileError::NoKey))
}

fn authorities(file: &Path) -> Result<RootCertStore, TlsConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        let added = roots.add(certificate);
        added.map_err(|_| TlsConfigError::new(file, TlsFileError::Unusable))?;
    }
    Ok(roots)
}

/// Only warns: the clock of this machine may be wrong.
fn warn_if_out_of_date(file: &Path, chain: &[CertificateDer<'_>]) {
    let Some(leaf) = chain.first() else { return };
    let Ok((_, leaf)) = x509_parser::parse_x509_certificate(leaf) else {
        return;
    };
    if !leaf.validity().is_valid() {
        let file = file.display();
        tracing::warn!(%file, until = %leaf.validity().not_after, "the certificate is out of date; put a new one in place and reload");
    }
}

/// The certificate that a client presented in its handshake, verified against the authority. It is an extension of
/// every request of the connection.
#[derive(Clone, Debug)]
pub struct PeerCertificate(Arc<CertificateDer<'static>>);

impl PeerCertificate {
    /// A certificate whose possession the client proved; for servers that terminate TLS themselves.
    #[must_use]
    pub fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Arc::new(certificate.clone().into_owned()))
    }

    /// The certificate in DER, as it was sent.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.0
    }
}

/// TLS configuration in force, and the files it was loaded from.
pub struct TlsAcceptor {
    recipe: Mutex<Tls>,
    config: RwLock<Arc<ServerConfig>>,
}

impl TlsAcceptor {
    /// Loads the files.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn new(tls: Tls) -> Result<Self, TlsConfigError> {
        let config = tls.load()?;
        Ok(Self {
            recipe: Mutex::new(tls),
            config: RwLock::new(config),
        })
    }

    /// Configuration for the next handshake.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        config.clone()
    }

    /// Reads the files again, or others: new handshakes use them, open connections are not affected.
    ///
    /// # Errors
    /// A file cannot be used; the present configuration stays.
    pub fn reload(&self, other: Option<Tls>) -> Result<(), TlsConfigError> {
        let mut recipe = self.recipe.lock().unwrap_or_else(PoisonError::into_inner);
        let next = other.unwrap_or_else(|| recipe.clone());
        let config = next.load()?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        *recipe = next;
        Ok(())
    }
}
