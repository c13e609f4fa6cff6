//! TLS: certificate, key and the authority of clients, from PEM files, replaceable at run time.
//!
//! A file that cannot be used leaves what is served as it is. Faults name the file and what to do,
//! and never quote its contents. Handshakes are in `server/connection.rs`; who a client's certificate
//! stands for is decided in `auth.rs`.

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::{Error as PemError, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Largest PEM file, in bytes: a bundle of all public authorities is a quarter of that.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Which files TLS is served with.
#[derive(Clone, Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    clients: Option<(PathBuf, ClientCertificates)>,
}

/// Whether clients must show a certificate of the authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// No connection without one.
    Required,
    /// One that is shown must be good; without one, other proof is asked for.
    Optional,
}

impl Tls {
    /// Serves with a certificate, its chain behind it, and its private key, in PEM files.
    pub fn files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
            clients: None,
        }
    }

    /// Asks clients for certificates of the authorities in a PEM file.
    #[must_use]
    pub fn client_ca(mut self, file: impl Into<PathBuf>, clients: ClientCertificates) -> Self {
        self.clients = Some((file.into(), clients));
        self
    }

    /// Reads the files.
    ///
    /// # Errors
    /// One of them cannot be used.
    fn load(&self) -> Result<Arc<ServerConfig>, TlsFault> {
        let chain = certificates(&self.certificate)?;
        warn_if_out_of_date(&self.certificate, &chain);
        let key = private_key(&self.key)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|_| TlsFault::new(&self.certificate, TlsTrouble::Unusable))?;
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
                let unusable = |_| TlsFault::new(file, TlsTrouble::Unusable);
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
    pub fn not_served(&self) -> TlsFault {
        TlsFault::new(&self.certificate, TlsTrouble::NotServed)
    }

    /// What rustls has against certificate and key together.
    fn refused(&self, error: &rustls::Error) -> TlsFault {
        match error {
            rustls::Error::InconsistentKeys(_) => {
                let certificate = self.certificate.clone();
                TlsFault::new(&self.key, TlsTrouble::OtherKey(certificate))
            }
            rustls::Error::InvalidCertificate(_) => {
                TlsFault::new(&self.certificate, TlsTrouble::Unusable)
            }
            _ => TlsFault::new(&self.key, TlsTrouble::Unusable),
        }
    }
}

/// A file that TLS cannot be served with.
#[derive(Debug, thiserror::Error)]
#[error("{}: {trouble}", file.display())]
pub struct TlsFault {
    /// Which.
    pub file: PathBuf,
    /// What is wrong with it.
    pub trouble: TlsTrouble,
}

impl TlsFault {
    fn new(file: &Path, trouble: TlsTrouble) -> Self {
        Self {
            file: file.to_owned(),
            trouble,
        }
    }
}

/// What is wrong with a file of TLS. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum TlsTrouble {
    /// It cannot be read.
    #[error("cannot be read ({0}); check the path and who may read it")]
    Unreadable(std::io::ErrorKind),
    /// It is too large.
    #[error("is larger than {FILE_BYTES_MAX} bytes; is it the right file?")]
    TooLarge,
    /// It is no PEM file.
    #[error("is not a well-formed PEM file; it was cut off or is of another format")]
    NotPem,
    /// There is no certificate in it.
    #[error("has no certificate in it; it must have a block BEGIN CERTIFICATE")]
    NoCertificate,
    /// There is no private key in it.
    #[error(
        "has no private key in it; it must have a block BEGIN PRIVATE KEY, without a passphrase"
    )]
    NoKey,
    /// The key is of another certificate.
    #[error("is not the key of the certificate in {}; put files in place that belong together", .0.display())]
    OtherKey(PathBuf),
    /// It cannot be used for another reason.
    #[error(
        "cannot be used; make it anew with a usual kind of key, such as ECDSA P-256 or RSA 2048"
    )]
    Unusable,
    /// The broker was started without TLS.
    #[error("is not used, because the broker was started without TLS; start it again")]
    NotServed,
}

fn read(file: &Path) -> Result<Vec<u8>, TlsFault> {
    let unreadable =
        |error: std::io::Error| TlsFault::new(file, TlsTrouble::Unreadable(error.kind()));
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let mut limited = opened.take(FILE_BYTES_MAX + 1);
    limited.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(TlsFault::new(file, TlsTrouble::TooLarge));
    }
    Ok(bytes)
}

/// The library's own words may quote the file, so none of them is passed on.
fn pem_fault(file: &Path, error: &PemError, missing: TlsTrouble) -> TlsFault {
    match error {
        PemError::NoItemsFound => TlsFault::new(file, missing),
        _ => TlsFault::new(file, TlsTrouble::NotPem),
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let bytes = read(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| pem_fault(file, &error, TlsTrouble::NoCertificate))?;
    if found.is_empty() {
        return Err(TlsFault::new(file, TlsTrouble::NoCertificate));
    }
    Ok(found)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsFault> {
    let bytes = zeroize::Zeroizing::new(read(file)?);
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|error| pem_fault(file, &error, TlsTrouble::NoKey))
}

fn authorities(file: &Path) -> Result<RootCertStore, TlsFault> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        let added = roots.add(certificate);
        added.map_err(|_| TlsFault::new(file, TlsTrouble::Unusable))?;
    }
    Ok(roots)
}

/// Clients will refuse it, but which clock is wrong is not ours to say.
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

/// The certificate that a client showed in its handshake, and that its authority signed. It is among
/// the extensions of every request of the connection.
#[derive(Clone, Debug)]
pub struct PeerCertificate(Arc<CertificateDer<'static>>);

impl PeerCertificate {
    /// A certificate that a client proved to have: for whoever ends TLS in its own way.
    #[must_use]
    pub fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Arc::new(certificate.clone().into_owned()))
    }

    /// The certificate as it was sent.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.0
    }
}

/// TLS as it is served, and the files it came from.
pub struct Secured {
    recipe: Mutex<Tls>,
    config: RwLock<Arc<ServerConfig>>,
}

impl Secured {
    /// Loads the files.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn new(tls: Tls) -> Result<Self, TlsFault> {
        let config = tls.load()?;
        Ok(Self {
            recipe: Mutex::new(tls),
            config: RwLock::new(config),
        })
    }

    /// What the next handshake uses.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        config.clone()
    }

    /// Reads the files again, or others: new handshakes use them, connections go on.
    ///
    /// # Errors
    /// A file cannot be used; what was served goes on being served.
    pub fn reload(&self, other: Option<Tls>) -> Result<(), TlsFault> {
        let mut recipe = self.recipe.lock().unwrap_or_else(PoisonError::into_inner);
        let next = other.unwrap_or_else(|| recipe.clone());
        let config = next.load()?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        *recipe = next;
        Ok(())
    }
}
