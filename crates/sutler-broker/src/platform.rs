//! Platforms of a broker: path prefix, realm and authentication of each.
//!
//! Platforms of one broker share the catalog and the engine and never see each other's instances. Requests are
//! dispatched to them in `app.rs`.

use crate::broker::BuildError;
use secrecy::SecretString;
use std::fmt;
use sutler_server::{Auth, AuthConfigError};

/// Maximum length of a prefix, in bytes.
const PREFIX_BYTES_MAX: usize = 128;
/// First segments reserved for the broker.
const RESERVED: [&str; 5] = ["admin", "healthz", "readyz", "livez", "metrics"];

/// One platform: a path prefix, a realm in the store, and authentication.
pub struct Platform {
    pub(crate) prefix: String,
    pub(crate) realm: Option<String>,
    pub(crate) auth: Option<Result<Auth, AuthConfigError>>,
}

impl Platform {
    /// A platform whose API is at `{prefix}/v2/`. Its realm is the prefix without the leading slash, unless set by
    /// [`Platform::realm`].
    pub fn at(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            realm: None,
            auth: None,
        }
    }

    /// Sets the realm of its records in the store.
    #[must_use]
    pub fn realm(mut self, name: &str) -> Self {
        self.realm = Some(name.to_owned());
        self
    }

    /// Requires one user's name and password.
    #[must_use]
    pub fn basic_auth(mut self, user: &str, password: impl Into<SecretString>) -> Self {
        self.auth = Some(Auth::basic(user, &password.into()));
        self
    }

    /// Requires the authentication of an [`Auth`]. Keep a clone of it to change it while the broker runs.
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = Some(Ok(auth));
        self
    }

    /// Disables authentication. For tests, and behind a proxy that authenticates.
    #[must_use]
    pub fn without_auth(mut self) -> Self {
        self.auth = Some(Ok(Auth::open()));
        self
    }
}

/// A platform after its checks.
pub(crate) struct CheckedPlatform {
    pub prefix: Prefix,
    pub realm: sutler_journal::Realm,
    pub auth: Auth,
}

/// Checks all platforms of a broker, longest prefix first.
pub(crate) fn check_platforms(
    platforms: Vec<Platform>,
) -> Result<Vec<CheckedPlatform>, BuildError> {
    let mut checked: Vec<CheckedPlatform> = Vec::with_capacity(platforms.len());
    for platform in platforms {
        let prefix = Prefix::parse(&platform.prefix)
            .map_err(|fault| BuildError::Prefix(platform.prefix.clone(), fault))?;
        let name = platform.realm.unwrap_or_else(|| prefix.segments.join("/"));
        let realm = sutler_journal::Realm::new(name)?;
        if checked.iter().any(|known| known.prefix == prefix) {
            return Err(BuildError::Prefix(platform.prefix, PrefixError::Twice));
        }
        if checked.iter().any(|known| known.realm == realm) {
            return Err(BuildError::RealmTwice(realm.as_str().to_owned()));
        }
        let auth = platform
            .auth
            .ok_or_else(|| BuildError::PlatformWithoutAuth(prefix.to_string()))??;
        checked.push(CheckedPlatform {
            prefix,
            realm,
            auth,
        });
    }
    checked.sort_by_key(|it| std::cmp::Reverse(it.prefix.segments.len()));
    Ok(checked)
}

/// Error of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// It does not begin with a slash.
    #[error("it must begin with a slash, such as /cf")]
    NoSlash,
    /// It is too long.
    #[error("it must not be longer than {PREFIX_BYTES_MAX} bytes")]
    TooLong,
    /// A segment has characters that paths would encode, or is a dot.
    #[error("use only letters, digits, - and _ between the slashes")]
    Characters,
    /// A segment is `v2`.
    #[error("leave v2 out: the API's own part of the path is added to the prefix")]
    Version,
    /// The first segment is reserved for the broker.
    #[error("the broker itself answers there; choose another name")]
    Reserved,
    /// Another platform has it.
    #[error("two platforms have it; give each its own")]
    Twice,
}

/// The path in front of a platform's `/v2`, in segments; none for the platform at `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    segments: Vec<String>,
}

impl Prefix {
    pub(crate) fn parse(text: &str) -> Result<Self, PrefixError> {
        if text.len() > PREFIX_BYTES_MAX {
            return Err(PrefixError::TooLong);
        }
        let rest = text.strip_prefix('/').ok_or(PrefixError::NoSlash)?;
        let mut segments = Vec::new();
        for segment in rest.split('/').filter(|segment| !segment.is_empty()) {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            if !segment.bytes().all(plain) {
                return Err(PrefixError::Characters);
            }
            if segment.eq_ignore_ascii_case("v2") {
                return Err(PrefixError::Version);
            }
            if segments.is_empty() && RESERVED.contains(&segment) {
                return Err(PrefixError::Reserved);
            }
            segments.push(segment.to_owned());
        }
        Ok(Self { segments })
    }

    /// End of this prefix in a path that has it; double slashes are accepted.
    pub(crate) fn ends_at(&self, path: &str) -> Option<usize> {
        let mut rest = path;
        for segment in &self.segments {
            rest = rest.trim_start_matches('/').strip_prefix(segment)?;
            if !rest.is_empty() && !rest.starts_with('/') {
                return None;
            }
        }
        Some(path.len() - rest.len())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            write!(f, "/{segment}")?;
        }
        if self.segments.is_empty() {
            f.write_str("/")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Platform, Prefix, PrefixError, check_platforms};
    use crate::broker::BuildError;

    fn fault(text: &str) -> Option<PrefixError> {
        Prefix::parse(text).err()
    }

    #[test]
    fn an_invalid_prefix_is_refused_with_its_reason() {
        assert_eq!(fault("cf"), Some(PrefixError::NoSlash));
        assert_eq!(fault(""), Some(PrefixError::NoSlash));
        assert_eq!(
            fault(&format!("/{}", "a".repeat(200))),
            Some(PrefixError::TooLong)
        );
        for text in ["/a b", "/a%20b", "/..", "/.", "/ä", "/a?b", "/{id}"] {
            assert_eq!(fault(text), Some(PrefixError::Characters), "{text}");
        }
        for text in ["/v2", "/cf/v2", "/V2/cf"] {
            assert_eq!(fault(text), Some(PrefixError::Version), "{text}");
        }
        for text in ["/admin", "/healthz/x", "/metrics"] {
            assert_eq!(fault(text), Some(PrefixError::Reserved), "{text}");
        }
        for text in ["/", "/cf", "/cf/", "//cf//prod", "/a_b-c/1"] {
            assert_eq!(fault(text), None, "{text}");
        }
    }

    #[test]
    fn a_path_is_matched_by_whole_segments() {
        let ends_at = |prefix: &str, path: &str| Prefix::parse(prefix).unwrap().ends_at(path);
        assert_eq!(ends_at("/", "/v2/catalog"), Some(0));
        assert_eq!(ends_at("/cf", "/cf/v2/catalog"), Some(3));
        assert_eq!(ends_at("/cf", "//cf//v2/catalog"), Some(4));
        assert_eq!(ends_at("/cf/prod", "/cf//prod/v2"), Some(9));
        assert_eq!(ends_at("/cf", "/cfx/v2/catalog"), None);
        assert_eq!(ends_at("/cf", "/v2/catalog"), None);
        assert_eq!(ends_at("/cf/prod", "/cf"), None);
    }

    fn refused(platforms: Vec<Platform>) -> BuildError {
        match check_platforms(platforms) {
            Ok(_) => panic!("these platforms cannot stand beside each other"),
            Err(error) => error,
        }
    }

    #[test]
    fn no_two_platforms_share_a_prefix_or_a_realm() {
        let at = |prefix| Platform::at(prefix).without_auth();
        let twice = refused(vec![at("/cf"), at("//cf/").realm("other")]);
        assert!(matches!(twice, BuildError::Prefix(_, PrefixError::Twice)));
        let realm = refused(vec![at("/cf"), at("/k8s").realm("cf")]);
        assert!(matches!(realm, BuildError::RealmTwice(_)), "{realm}");
        let open = refused(vec![Platform::at("/cf")]);
        assert!(matches!(open, BuildError::PlatformWithoutAuth(_)), "{open}");
    }

    #[test]
    fn the_longest_prefix_is_tried_first() {
        let at = |prefix| Platform::at(prefix).without_auth();
        let all = check_platforms(vec![at("/").realm("broker"), at("/a"), at("/a/b")]).unwrap();
        let order: Vec<String> = all.iter().map(|it| it.prefix.to_string()).collect();
        assert_eq!(order, ["/a/b", "/a", "/"]);
    }
}
