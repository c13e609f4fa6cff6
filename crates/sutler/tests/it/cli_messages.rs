//! Output of the program: help, and errors with a suggested fix. Longer texts are in `cli_messages/`.

use crate::process::{Broker, folder, run_sutler};
use std::path::Path;

/// Fails unless the program prints this error, with exit code 1 and an empty standard output.
#[track_caller]
fn refuses(folder: &Path, arguments: &[&str], sentence: &str) {
    let output = run_sutler(folder, arguments);
    assert_eq!(output.stderr, sentence);
    assert_eq!((output.stdout.as_str(), output.code), ("", Some(1)));
}

#[test]
fn help_names_every_command() {
    let output = run_sutler(folder().path(), &["--help"]);
    assert_eq!(output.stdout, include_str!("cli_messages/help.txt"));
    assert_eq!(output.code, Some(0));
}

#[test]
fn help_of_the_broker_names_every_option_and_its_default() {
    let output = run_sutler(folder().path(), &["broker", "--help"]);
    assert_eq!(output.stdout, include_str!("cli_messages/broker-help.txt"));
    assert_eq!(output.code, Some(0));
}

#[test]
fn wrong_usage_has_a_separate_exit_code() {
    for arguments in [
        &[][..],
        &["brocker"],
        &["broker", "--in-memory", "--db", "x.db"],
    ] {
        let output = run_sutler(folder().path(), arguments);
        assert_eq!(output.code, Some(2), "{arguments:?}");
        assert!(output.stderr.contains("Usage: sutler"), "{}", output.stderr);
    }
}

#[test]
fn a_broker_without_credentials_is_refused_with_the_settings_to_change() {
    let sentence = "sutler: the configuration has 1 fault:\n  auth needs `users` or `bearer`, or BROKER_USERNAME and BROKER_PASSWORD in the environment; to serve everybody, say `auth: none` or --no-auth\n";
    refuses(folder().path(), &["broker", "--in-memory"], sentence);
}

#[test]
fn a_missing_catalog_is_named() {
    let sentence = "sutler: the configuration has 1 fault:\n  none.yaml: cannot be read: No such file or directory (os error 2)\n";
    let arguments = [
        "broker",
        "--in-memory",
        "--no-auth",
        "--catalog",
        "none.yaml",
    ];
    refuses(folder().path(), &arguments, sentence);
}

#[test]
fn every_fault_of_an_invalid_catalog_is_printed_with_its_line() {
    let folder = folder();
    let path = folder.path().join("bad.yaml");
    std::fs::write(path, "services:\n  - name: x\n").expect("a file");
    let arguments = [
        "broker",
        "--in-memory",
        "--no-auth",
        "--catalog",
        "bad.yaml",
    ];
    refuses(
        folder.path(),
        &arguments,
        include_str!("cli_messages/bad-catalog.txt"),
    );
}

#[test]
fn a_second_process_on_the_same_database_is_refused_and_the_first_continues() {
    let folder = folder();
    let first = Broker::start(folder.path(), &["broker", "--no-auth"]);
    let sentence = "sutler: sutler.db is in use by another process; stop that one, or give this one a file of its own\n";
    let second = ["broker", "--no-auth", "--listen", "127.0.0.1:0"];
    refuses(folder.path(), &second, sentence);
    assert!(std::net::TcpStream::connect(first.address()).is_ok());
}

#[test]
fn a_database_of_a_newer_program_is_refused_and_left_unchanged() {
    let folder = folder();
    drop(Broker::start(folder.path(), &["broker", "--no-auth"]));
    let path = folder.path().join("sutler.db");
    let version = |sql: &str| {
        let file = rusqlite::Connection::open(&path).expect("a database");
        file.execute_batch(sql).expect("it is changed");
        let read = file.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
        read.expect("it has a version")
    };
    let known = version("");
    version("PRAGMA user_version = 999");
    let sentence = format!(
        "sutler: sutler.db has layout 999, this program knows layouts up to {known}: use the newer program, or a backup made before it was upgraded\n"
    );
    refuses(folder.path(), &["broker", "--no-auth"], &sentence);
    assert_eq!(version(""), 999);
}

#[test]
fn a_file_that_is_not_a_database_is_refused_and_left_unchanged() {
    let folder = folder();
    let path = folder.path().join("sutler.db");
    std::fs::write(&path, "my diary\n".repeat(1000)).expect("a file");
    let output = run_sutler(folder.path(), &["broker", "--no-auth"]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert!(
        output.stderr.starts_with("sutler: sutler.db "),
        "{}",
        output.stderr
    );
    let text = std::fs::read_to_string(&path).expect("it is still text");
    assert_eq!(text, "my diary\n".repeat(1000));
}

#[test]
fn a_key_file_that_others_can_read_is_refused_with_the_command_that_fixes_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    drop(Broker::start(folder.path(), &["broker", "--no-auth"]));
    let key = folder.path().join("sutler.key");
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(key, open).expect("it is ours");
    let sentence =
        "sutler: the key file sutler.key can be read by others: run `chmod 600 sutler.key`\n";
    refuses(folder.path(), &["broker", "--no-auth"], sentence);
}

#[test]
fn a_wrong_key_is_detected_at_the_start() {
    let folder = folder();
    drop(Broker::start(folder.path(), &["broker", "--no-auth"]));
    let make = ["store", "keys", "make", "--key-file", "other.key"];
    assert_eq!(run_sutler(folder.path(), &make).code, Some(0));
    let output = run_sutler(
        folder.path(),
        &["broker", "--no-auth", "--key-file", "other.key"],
    );
    assert_eq!(output.code, Some(1));
    let sentence = "sutler: the key ring does not open this store";
    assert!(output.stderr.contains(sentence), "{}", output.stderr);
}
