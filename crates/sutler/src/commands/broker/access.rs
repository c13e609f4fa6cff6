//! Access to each path of a broker: one [`Auth`] for each platform and one for operators.
//!
//! The conversion of a single section is in the library (`config/blocks/auth.rs`).

use sutler::{BrokerConfig, ResolveError};
use sutler_broker::Auth;

/// Every path that is served, and the authentication of its requests.
pub(super) fn of(config: &BrokerConfig) -> Result<Vec<(String, Auth)>, ResolveError> {
    let mut all = Vec::new();
    if let Some(access) = config.root_access() {
        all.push(("/".to_owned(), access.resolve(&variable)?));
    }
    for platform in &config.platforms {
        let auth = platform.access().resolve(&variable)?;
        all.push((platform.prefix.clone(), auth));
    }
    Ok(all)
}

/// The authentication of operators; `None` if there is no API for them.
pub(super) fn operators(config: &BrokerConfig) -> Result<Option<Auth>, ResolveError> {
    let admin = config.admin.as_ref();
    admin.map(|it| it.access().resolve(&variable)).transpose()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
