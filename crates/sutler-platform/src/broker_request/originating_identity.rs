//! The originating identity of a request: the user who caused it, as the broker's profile writes a user.
//!
//! Keeps P-010 (none where no user caused the request), P-011 (exactly the author of the intent), P-012 (the same
//! platform as in `context`) and P-013 (the fields of each profile). Not here: who the author is (`author.rs`), and the
//! form of the header (`sutler_osb::OriginatingIdentity`).

use super::profile::Profile;
use crate::author::Author;
use serde_json::{Map, Value};
use sutler_osb::{ORIGINATING_IDENTITY_BYTES_MAX, OriginatingIdentity, OriginatingIdentityError};

/// What caused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestCause<'a> {
    /// An intent of this author.
    Author(&'a Author),
    /// The platform removes what may have been left at the broker.
    OrphanMitigation,
    /// The platform reads the catalog again.
    CatalogRelist,
}

/// The author cannot be named to brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorIdentityError {
    /// The author has no id.
    #[error("the author has no uid: brokers need one to know who caused a request")]
    NoUid,
    /// The author has no name.
    #[error("the author has no username: brokers need one to know who caused a request")]
    NoUsername,
    /// The header would be longer than [`ORIGINATING_IDENTITY_BYTES_MAX`].
    #[error(
        "the author's groups and attributes do not fit into an originating identity of at most \
         {ORIGINATING_IDENTITY_BYTES_MAX} bytes"
    )]
    TooLong,
    /// Brokers could not read the header.
    #[error("the author cannot be written as an originating identity: {0}")]
    Unreadable(OriginatingIdentityError),
}

/// Checks, before an intent is accepted, that its author can be named to a broker with any profile: a broker's profile
/// may change before the intent is sent.
pub fn check_author(author: &Author) -> Result<(), AuthorIdentityError> {
    if author.uid.is_empty() {
        return Err(AuthorIdentityError::NoUid);
    }
    if author.username.is_empty() {
        return Err(AuthorIdentityError::NoUsername);
    }
    for profile in Profile::ALL {
        let header = identity_of(profile, author).to_header();
        OriginatingIdentity::parse(&header).map_err(explain)?;
    }
    Ok(())
}

/// The originating identity of a request; `None` if no user caused it.
pub fn originating_identity(
    profile: Profile,
    cause: RequestCause<'_>,
) -> Option<OriginatingIdentity> {
    match cause {
        RequestCause::Author(author) => Some(identity_of(profile, author)),
        RequestCause::OrphanMitigation | RequestCause::CatalogRelist => None,
    }
}

fn identity_of(profile: Profile, author: &Author) -> OriginatingIdentity {
    let value = match profile {
        Profile::Kubernetes | Profile::Sutler => user_info(author),
        Profile::CloudFoundry => {
            Map::from_iter([("user_id".to_owned(), Value::from(author.uid.as_str()))])
        }
    };
    OriginatingIdentity {
        platform: profile.platform().to_owned(),
        value,
    }
}

/// The fields of Kubernetes' `user.info`; all four are mandatory, also when they are empty.
fn user_info(author: &Author) -> Map<String, Value> {
    let extra = author.extra.iter();
    let extra = extra.map(|(name, values)| (name.clone(), Value::from(values.clone())));
    Map::from_iter([
        ("username".to_owned(), Value::from(author.username.as_str())),
        ("uid".to_owned(), Value::from(author.uid.as_str())),
        ("groups".to_owned(), Value::from(author.groups.clone())),
        ("extra".to_owned(), Value::Object(extra.collect())),
    ])
}

fn explain(error: OriginatingIdentityError) -> AuthorIdentityError {
    match error {
        OriginatingIdentityError::TooLong => AuthorIdentityError::TooLong,
        OriginatingIdentityError::NoPlatform
        | OriginatingIdentityError::NotBase64
        | OriginatingIdentityError::NotAnObject
        | OriginatingIdentityError::TooDeep
        | OriginatingIdentityError::Reserved => AuthorIdentityError::Unreadable(error),
    }
}
