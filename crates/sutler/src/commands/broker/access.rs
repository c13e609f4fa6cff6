//! Who may come in where, from a configuration: one [`Auth`] for each path.

use sutler::{AccessConfig, AuthMode, BearerConfig, BrokerConfig, UserConfig};
use sutler_broker::{Auth, Issuer, Proofs, Users};

/// Why nobody can be let in; says what to do.
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Every path that is served, and who may come in there.
pub(super) fn of(config: &BrokerConfig) -> Result<Vec<(String, Auth)>, BoxError> {
    let mut all = Vec::new();
    if let Some(access) = config.front() {
        all.push(("/".to_owned(), auth(&access)?));
    }
    for platform in &config.platforms {
        let access = AccessConfig {
            auth: platform.auth,
            users: &platform.users,
            bearer: platform.bearer.as_ref(),
        };
        all.push((platform.prefix.clone(), auth(&access)?));
    }
    Ok(all)
}

/// Who may use the operators' API, if there is one.
pub(super) fn operators(config: &BrokerConfig) -> Result<Option<Auth>, BoxError> {
    let Some(admin) = &config.admin else {
        return Ok(None);
    };
    let access = AccessConfig {
        auth: AuthMode::Required,
        users: &admin.users,
        bearer: admin.bearer.as_ref(),
    };
    auth(&access).map(Some)
}

fn auth(access: &AccessConfig<'_>) -> Result<Auth, BoxError> {
    match access.auth {
        AuthMode::None => Ok(Auth::open()),
        AuthMode::Required => {
            let issuers = access.bearer.map(issuer).transpose()?;
            Ok(Auth::any_of(Proofs {
                users: users(access.users)?,
                issuers: issuers.into_iter().collect(),
                ..Proofs::default()
            })?)
        }
    }
}

fn issuer(bearer: &BearerConfig) -> Result<Issuer, BoxError> {
    let (first, others) = match bearer.audience.split_first() {
        Some((first, others)) => (first.as_str(), others),
        None => ("", &[][..]),
    };
    let issuer = Issuer::new(&bearer.issuer, first)
        .keys_at(&bearer.jwks_url.to_string())
        .clock_skew(bearer.skew.0);
    let issuer = others.iter().fold(issuer, |it, more| it.or_audience(more));
    let issuer = bearer.scopes.iter().fold(issuer, |it, more| it.scope(more));
    match &bearer.ca {
        Some(file) => Ok(issuer.authorities(&std::fs::read(&file.0)?)),
        None => Ok(issuer),
    }
}

fn users(listed: &[UserConfig]) -> Result<Users, BoxError> {
    let mut users = Users::new();
    for user in listed {
        users = match (&user.password, &user.password_hash) {
            (Some(password), _) => users.with_password(&user.name, &password.reveal(&variable)?)?,
            (None, Some(hash)) => {
                let hash = hash.reveal(&variable)?;
                users.with_hash(&user.name, secrecy::ExposeSecret::expose_secret(&hash))?
            }
            (None, None) => users,
        };
    }
    Ok(users)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
