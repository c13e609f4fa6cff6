//! What differs between two configurations, and what of it a running broker can take over. Pure.

use super::model::Config;
use serde_json::Value;

/// Keys whose values are taken over at a reload; what is below them too.
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

/// Keys of a platform, or of the operators, that are taken over at a reload.
const RELOADED_BELOW: [&str; 2] = ["users", "bearer"];

/// The paths of what differs and holds only after a restart, in order and without those below one
/// that is named. Secrets are not compared: they are always read again.
pub fn restart_to_apply(old: &Config, new: &Config) -> Vec<String> {
    let json = |config| serde_json::to_value(config).unwrap_or_default();
    let mut changed = Vec::new();
    compare(&json(old), &json(new), "", &mut changed);
    changed.retain(|path| !is_reloaded(path));
    changed
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
    use super::restart_to_apply;

    fn changed(old: &str, new: &str) -> Vec<String> {
        let config = |text| good(&of_file(text)).config;
        restart_to_apply(&config(old), &config(new))
    }

    #[test]
    fn what_is_taken_over_is_not_named() {
        let old = "users: [{name: a, password: x}]\nlog: {level: info}\n";
        let new = "users: [{name: b, password: y}, {name: c, password: z}]\nlog: {level: debug}\ncatalog: {file: a.yaml}\n";
        assert!(changed(old, new).is_empty());
    }

    #[test]
    fn what_needs_a_restart_is_named() {
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
