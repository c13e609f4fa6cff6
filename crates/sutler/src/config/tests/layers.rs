//! Precedence of file, environment and flags, and the sources that are shown.

use super::super::show;
use super::{faults, flag, good, kept, of_file, with_variables};

const FILE: &str = "\
listen: 127.0.0.1:1
drain: 1m
users:
  - name: one
    password: hush-in-the-file
  - {name: two, password: '${env:TWO}'}
";

#[test]
fn flags_override_variables_and_variables_override_the_file() {
    let mut input = with_variables(
        FILE,
        &[
            ("SUTLER_LISTEN", "127.0.0.1:2"),
            ("SUTLER_DRAIN", "2m"),
            ("HOME", "/"),
        ],
    );
    input.flags = vec![flag("--listen", "listen", "127.0.0.1:3")];
    let draft = good(&input);
    assert_eq!(draft.config.listen.as_str(), "127.0.0.1:3");
    assert_eq!(draft.config.drain.to_string(), "2m");
    let origin = |path| draft.sources.origin(path).to_string();
    assert_eq!(origin("listen"), "--listen");
    assert_eq!(origin("drain"), "SUTLER_DRAIN");
    assert_eq!(origin("users[0].name"), "sutler.yaml:4");
    assert_eq!(origin("workers"), "default");
}

#[test]
fn a_variable_sets_list_items_and_whole_lists() {
    let input = with_variables(
        FILE,
        &[
            ("SUTLER_USERS__0__PASSWORD", "[hush"),
            ("SUTLER_USERS__2", "{name: three, password: '1'}"),
            ("SUTLER_LOG", "debug"),
            ("SUTLER_CONFIG", "elsewhere.yaml"),
            ("SUTLER_TEST_ANYTHING", "1"),
            ("SUTLER_ADMIN_URL", "http://127.0.0.1:8080/admin"),
        ],
    );
    let draft = good(&input);
    let names: Vec<&str> = draft
        .config
        .users
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["one", "two", "three"]);
    assert_eq!(draft.config.log.level, "debug");
}

#[test]
fn the_old_credentials_are_a_user_if_none_is_configured() {
    let old = [("BROKER_USERNAME", "admin"), ("BROKER_PASSWORD", "hush")];
    let draft = good(&with_variables("", &old));
    assert_eq!(draft.config.users[0].name, "admin");
    assert_eq!(
        draft.sources.origin("users[0].name").to_string(),
        "BROKER_USERNAME"
    );
    assert!(
        good(&with_variables("auth: none\n", &old))
            .config
            .users
            .is_empty()
    );
    assert_eq!(good(&with_variables(FILE, &old)).config.users.len(), 2);
    assert_eq!(faults(&with_variables("", &old[..1])).0.len(), 1);
}

#[test]
fn shown_values_have_their_source_and_no_secrets() {
    let mut input = with_variables(FILE, &[("SUTLER_LOG__LEVEL", "debug")]);
    input.flags = vec![flag("--in-memory", "store.url", "memory:")];
    let draft = good(&input);
    let shown = show(&draft.config, &draft.sources);
    kept("shown.txt", include_str!("shown.txt"), &shown);
    assert!(!shown.contains("hush"));
    assert!(!format!("{draft:?}").contains("hush"));
}

#[test]
fn shown_values_can_be_read_again() {
    let draft = good(&of_file(FILE));
    let shown = show(&draft.config, &draft.sources);
    let again = good(&of_file(&shown));
    let json = |config| serde_json::to_value(config).expect("JSON");
    let (mut one, mut two) = (json(&draft.config), json(&again.config));
    for config in [&mut one, &mut two] {
        config["users"][0]["password"] = serde_json::Value::Null;
    }
    assert_eq!(one, two);
}

#[test]
fn settings_that_admit_everybody_are_warned_of() {
    let warnings = |text: &str| good(&of_file(text)).warnings;
    let open = warnings("auth: none\nlisten: 0.0.0.0:80\n");
    assert_eq!(
        open,
        ["sutler.yaml:2:9: listen lets other machines in, and nobody is asked who they are"]
    );
    let plain = warnings("users: [{name: a, password: hush}]\nlisten: 0.0.0.0:80\n");
    assert!(plain[0].contains("unencrypted"), "{plain:?}");
    let both = warnings("auth: none\nusers: [{name: a, password: hush}]\n");
    assert!(both[0].contains("nobody is asked"), "{both:?}");
    assert!(warnings("auth: none\n").is_empty());
}
