//! All faults, one by one and all at once; the texts are stored in a file.

use super::{faults, kept, of_file, with_variables};
use std::fmt::Write as _;

/// Files with faults; the expected texts are in `faults.txt` in this folder.
const CASES: &[(&str, &str)] = &[
    ("an unknown key", "auth: none\nlisen: 127.0.0.1:80\n"),
    ("an unknown key below", "auth: none\nlog: {levle: info}\n"),
    ("an unknown key near none", "auth: none\nelephants: 3\n"),
    (
        "a value of the wrong kind",
        "auth: none\nworkers: many\nusers: {name: a}\n",
    ),
    ("an unknown word", "auth: nobody\n"),
    ("a bad address", "auth: none\nlisten: 8080\n"),
    ("a bad duration", "auth: none\ndrain: soon\n"),
    ("a bad size", "auth: none\nlimits: {body: big}\n"),
    (
        "a bad schedule",
        "auth: none\ninstances: {cleanup: {all: tomorrow}}\n",
    ),
    (
        "a bad store",
        "auth: none\nstore: {url: 'redis://me:hush@host/db'}\n",
    ),
    (
        "a server without keys",
        "auth: none\nstore: {url: 'postgres://me:hush@host/db'}\n",
    ),
    (
        "a key of memory",
        "auth: none\nstore: {url: 'memory:', key_file: k}\n",
    ),
    ("a bad level", "auth: none\nlog: {level: 'a=b=c'}\n"),
    ("no authentication", "listen: 127.0.0.1:80\n"),
    (
        "two users of one name",
        "users: [{name: a, password: hush}, {name: a, password: hush}]\n",
    ),
    (
        "a user without a password",
        "users: [{name: a}, {name: 'b:c', password: hush, password_hash: hush}]\n",
    ),
    ("a user without a name", "users: [{password: hush}]\n"),
    (
        "a secret that is no reference",
        "users: [{name: a, password: '${hush}'}]\n",
    ),
    (
        "a key without a certificate",
        "auth: none\ntls: {key: k.pem}\n",
    ),
    (
        "clients without a root",
        "auth: none\ntls: {key: k, certificate: c, client_auth: required}\n",
    ),
    (
        "a root without clients",
        "auth: none\ntls: {key: k, certificate: c, client_ca: a}\n",
    ),
    (
        "two platforms of one prefix",
        "platforms:\n- {prefix: /cf, realm: a, auth: none}\n- {prefix: /cf, realm: b, auth: none}\n",
    ),
    (
        "two platforms of one realm",
        "platforms:\n- {prefix: /cf, realm: a, auth: none}\n- {prefix: /k8s, realm: a, auth: none}\n",
    ),
    (
        "a platform of a realm that is taken",
        "platforms: [{prefix: /cf, realm: platform, auth: none}]\n",
    ),
    (
        "a platform without users",
        "platforms: [{prefix: /cf, realm: a}]\n",
    ),
    (
        "a prefix that is none",
        "platforms:\n- {prefix: cf, realm: a, auth: none}\n- {prefix: /v2, realm: b, auth: none}\n- {prefix: '/a b', realm: c, auth: none}\n",
    ),
    ("operators without users", "auth: none\nadmin: {}\n"),
    (
        "operators at a platform's path",
        "auth: none
admin: {prefix: /cf, users: [{name: a, password: hush}]}
platforms: [{prefix: /cf, realm: a, auth: none}]
",
    ),
    (
        "a provider without a name",
        "bearer: {issuer: '', jwks_url: 'https://me:hush@id/keys', audience: []}\n",
    ),
    (
        "a catalog at two places",
        "auth: none\ncatalog: {file: a.yaml, services: []}\n",
    ),
    (
        "a catalog instead of a configuration",
        "services: []\nauth: none\n",
    ),
    ("no mapping", "- auth\n- none\n"),
    ("no YAML", "auth: none\n  users: [\n"),
    ("a key twice", "auth: none\nauth: none\n"),
    (
        "two documents with one key",
        "auth: none\n---\nauth: none\n",
    ),
    (
        "nothing to do",
        "auth: none\nworkers: 0\nlimits: {body: 1}\ntimeouts: {headers: 0s, lease: 1ms}\n",
    ),
    (
        "many at once",
        "lisen: x\ndrain: soon\nworkers: many\nusers:\n  - nmae: a\n  - {name: b, password: hush}\n  - {name: b, password: hush}\n",
    ),
];

#[test]
fn every_fault_of_a_file_is_reported_as_recorded() {
    let mut actual = String::new();
    for (title, text) in CASES {
        let faults = faults(&of_file(text));
        let _ = writeln!(actual, "== {title}\n{text}-- {faults}\n");
        assert!(!faults.0.is_empty(), "{title} is no fault");
        assert!(!faults.to_string().contains("hush"), "{title}: {faults}");
    }
    kept("faults.txt", include_str!("faults.txt"), &actual);
}

/// Variables with faults.
const VARIABLES: &[(&str, &str)] = &[
    ("SUTLER_LISEN", "127.0.0.1:80"),
    ("SUTLER_LOG__LEVLE", "info"),
    ("SUTLER_ELEPHANTS", "3"),
    ("SUTLER_LOG__LEVEL__MORE", "info"),
    ("SUTLER_USERS__FIRST__NAME", "a"),
    ("SUTLER_USERS__7__NAME", "a"),
    ("SUTLER_USERS", "hush: ["),
    ("SUTLER_DRAIN", "hush"),
    ("SUTLER_WORKERS", "hush"),
    ("SUTLER_listen", "127.0.0.1:80"),
    ("SUTLER_CATALOG__SERVICES", "[]"),
    ("SUTLER_", ""),
];

#[test]
fn every_fault_of_a_variable_is_reported_as_recorded() {
    let mut actual = String::new();
    for variable in VARIABLES {
        let faults = faults(&with_variables("auth: none\n", &[*variable]));
        let _ = writeln!(actual, "== {}\n-- {faults}\n", variable.0);
        assert!(!faults.0.is_empty(), "{} is no fault", variable.0);
        assert!(!faults.to_string().contains("hush"), "{faults}");
    }
    kept("variables.txt", include_str!("variables.txt"), &actual);
}
