//! Differences between two configurations, and which of them need a restart. Pure.

use super::model::BrokerConfig;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

/// Keys that a reload applies, with everything below them.
const RELOADED: [&str; 8] = [
    "catalog",
    "users",
    "bearer",
    "log.level",
    "tls.certificate",
    "tls.key",
    "tls.client_ca",
    "tls.client_auth",
];

/// Keys of a platform, or of the operators, that a reload applies.
const RELOADED_BELOW: [&str; 2] = ["users", "bearer"];

/// The paths that differ and need a restart, in order; paths below a listed one are left out. Secrets are not
/// compared, because they are always read again. The URL of a store is compared, because its printed form hides
/// too much to see a difference.
pub fn restart_to_apply(old: &ReloadInput<'_>, new: &ReloadInput<'_>) -> Vec<String> {
    let json = |held: &ReloadInput<'_>| serde_json::to_value(held.config).unwrap_or_default();
    let mut changed = Vec::new();
    compare(&json(old), &json(new), "", &mut changed);
    changed.retain(|path| !is_reloaded(path));
    let url = |held: &ReloadInput<'_>| held.store.map(|it| it.expose_secret().to_owned());
    if url(old) != url(new) && !changed.iter().any(|path| path == STORE_URL) {
        changed.push(STORE_URL.to_owned());
        changed.sort();
    }
    changed
}

/// Path of the URL of the store.
const STORE_URL: &str = "store.url";

/// A configuration, and the URL of the store's server as it was when the configuration was read.
pub struct ReloadInput<'a> {
    /// The configuration.
    pub config: &'a BrokerConfig,
    /// See [`StoreConfig::server_url`](super::StoreConfig::server_url).
    pub store: Option<&'a SecretString>,
}

fn compare(old: &Value, new: &Value, path: &str, changed: &mut Vec<String>) {
    if let (Value::Object(old), Value::Object(new)) = (old, new) {
        let all: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in all {
            let inner = match path {
                "" => key.clone(),
                path => format!("{path}.{key}"),
            };
            let (old, new) = (old.get(key), new.get(key));
            compare(
                old.unwrap_or(&Value::Null),
                new.unwrap_or(&Value::Null),
                &inner,
                changed,
            );
        }
        return;
    }
    if let (Value::Array(old), Value::Array(new)) = (old, new)
        && old.len() == new.len()
    {
        for (nth, (old, new)) in old.iter().zip(new).enumerate() {
            compare(old, new, &format!("{path}[{nth}]"), changed);
        }
        return;
    }
    if old != new {
        changed.push(path.to_owned());
    }
}

fn is_reloaded(path: &str) -> bool {
    let below = |path: &str, key: &str| {
        path.strip_prefix(key)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let inner = path.strip_prefix("admin.").or_else(|| {
        path.strip_prefix("platforms[")?
            .split_once("].")
            .map(|it| it.1)
    });
    RELOADED.iter().any(|key| below(path, key))
        || inner.is_some_and(|inner| RELOADED_BELOW.iter().any(|key| below(inner, key)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{good, of_file};
    use super::{ReloadInput, restart_to_apply};
    use secrecy::SecretString;

    fn changed(old: &str, new: &str) -> Vec<String> {
        let config = |text| good(&of_file(text)).config;
        let (old, new) = (config(old), config(new));
        let stores = [&old, &new].map(|it| it.store.server_url(&|_| None));
        let [before, after] = &stores;
        restart_to_apply(&held(&old, before), &held(&new, after))
    }

    fn held<'a>(
        config: &'a super::BrokerConfig,
        store: &'a Option<SecretString>,
    ) -> ReloadInput<'a> {
        let store = store.as_ref();
        ReloadInput { config, store }
    }

    #[test]
    fn a_changed_server_url_is_named_though_it_is_never_shown() {
        let with = |password: &str| {
            format!("auth: none\nstore: {{url: 'postgres://me:{password}@host/db', key_file: k}}\n")
        };
        assert_eq!(changed(&with("old"), &with("new")), ["store.url"]);
        assert!(changed(&with("old"), &with("old")).is_empty());
        let file = "auth: none\nstore: {url: 'sqlite:x.db', key_file: k}\n";
        assert_eq!(changed(file, &with("old")), ["store.url"]);
    }

    #[test]
    fn a_url_from_a_file_or_variable_is_compared_as_it_was_read() {
        let text = "auth: none\nstore: {url: '${env:URL}', key_file: k}\n";
        let config = good(&of_file(text)).config;
        let at = |url: &str| config.store.server_url(&|_| Some(url.to_owned()));
        let (old, new) = (at("etcd://one"), at("etcd://two"));
        let changed = restart_to_apply(&held(&config, &old), &held(&config, &new));
        assert_eq!(changed, ["store.url"]);
    }

    #[test]
    fn settings_that_are_applied_are_not_named() {
        let old = "users: [{name: a, password: x}]\nlog: {level: info}\n";
        let new = "users: [{name: b, password: y}, {name: c, password: z}]\nlog: {level: debug}\ncatalog: {file: a.yaml}\n";
        assert!(changed(old, new).is_empty());
    }

    #[test]
    fn settings_that_need_a_restart_are_named() {
        let old =
            "auth: none\nlisten: 127.0.0.1:1\nplatforms: [{prefix: /a, realm: a, auth: none}]\n";
        let new = "auth: none\nlisten: 127.0.0.1:2\ndrain: 1m\nplatforms: [{prefix: /b, realm: a, auth: none}]\nlog: {format: json}\n";
        assert_eq!(
            changed(old, new),
            ["drain", "listen", "log.format", "platforms[0].prefix"]
        );
        let more = "auth: none\nplatforms: []\nlisten: 127.0.0.1:1\n";
        assert_eq!(changed(old, more), ["platforms"]);
    }
}
