//! `sutler hash-password`: input and output.

use crate::process::{folder, sutler};
use std::io::Write as _;
use std::process::{Output, Stdio};

fn hashed(input: &[u8]) -> Output {
    let mut process = sutler(folder().path())
        .arg("hash-password")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdin = process.stdin.take().expect("its input is ours");
    stdin.write_all(input).expect("it reads");
    drop(stdin);
    process.wait_with_output().expect("it ends")
}

#[test]
fn a_password_from_standard_input_becomes_a_hash_that_configurations_accept() {
    let output = hashed(b"correct horse battery staple\n");
    assert!(output.status.success());
    let hash = String::from_utf8(output.stdout).expect("it prints text");
    let users = sutler_broker::Users::new().with_hash("user", hash.trim_end());
    assert!(users.is_ok(), "{hash}");
    let again = hashed(b"correct horse battery staple\n");
    assert_ne!(again.stdout, hash.as_bytes(), "each has its own salt");
}

#[test]
fn a_missing_password_is_an_error_with_a_suggestion() {
    let output = hashed(b"\n");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).expect("it prints text");
    assert!(stderr.contains("choose another one"), "{stderr}");
    assert!(output.stdout.is_empty());
}
