//! Passwords are in the credentials, and nowhere else: not in a log at any level, not in the records, not in the
//! process list, and not in the log of the server.

use crate::broker_process::PLATFORM_PASSWORD;
use crate::fixture::{self, Fixture};
use crate::sql::Session;
use serde_json::json;
use std::fs;

#[tokio::test]
async fn no_password_is_written_anywhere() {
    let Some(server) = fixture::own() else {
        return;
    };
    let fixture = Fixture::on(server, "canary");
    fixture.provision("one").await;
    let credentials = fixture.bind("one", "app").await;
    Session::with(&credentials).await;
    let (status, _) = fixture.broker.rotate("one", "app", "next").await;
    assert_eq!(status, 201);
    // A failure has an explanation, which could quote the secret.
    let greedy = json!({ "connection_limit": 6 });
    assert_eq!(fixture.broker.provision("two", greedy).await.0, 400);
    fixture.server.kill();
    let (status, started) = fixture.broker.start_provision("three").await;
    assert_eq!(status, 202, "{started}");
    fixture.server.start();
    assert_eq!(
        fixture.broker.until_it_ends("three").await.1["state"],
        "succeeded"
    );
    let password = credentials["password"].as_str().expect("a password");
    let mut written = vec![
        ("the log".to_owned(), fixture.broker.log().into_bytes()),
        (
            "the process list".to_owned(),
            fixture.broker.command_line().into_bytes(),
        ),
        (
            "the server's log".to_owned(),
            fixture.server.log().into_bytes(),
        ),
    ];
    for entry in fs::read_dir(fixture.folder.path()).expect("a folder") {
        let path = entry.expect("a file").path();
        written.push((path.display().to_string(), fs::read(&path).expect("a file")));
    }
    assert!(written.iter().any(|(name, _)| name.ends_with(".db")));
    for (name, bytes) in &written {
        for secret in [password, sutler_servers::PASSWORD, PLATFORM_PASSWORD] {
            let found = bytes
                .windows(secret.len())
                .any(|it| it == secret.as_bytes());
            assert!(!found, "{name} holds {secret}");
        }
    }
    // The search covers the right places: the server logged the statement.
    assert!(fixture.server.log().contains("SCRAM-SHA-256$4096"));
    fixture.deprovision("three").await;
    fixture.deprovision("one").await;
    assert_eq!(fixture.left().await, (0, 0));
}
