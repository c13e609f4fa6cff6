//! The password in the URL of a store is not shown anywhere else.

use super::ServerKind;
use super::fixture::{Fixture, until};
use sutler_servers::{Demands, PASSWORD};

#[track_caller]
fn nowhere_in(text: &[u8], location: &str) {
    let word = PASSWORD.as_bytes();
    let found = text.windows(word.len()).any(|it| it == word);
    assert!(!found, "the password is in {location}");
}

pub(super) fn the_password_of_the_url_is_never_shown(kind: &ServerKind) {
    let Some(server) = (kind.own)(Demands::default()) else {
        return;
    };
    let server_url = (kind.guarded)(&server);
    assert!(server_url.url().contains(PASSWORD), "there is one");
    let fixture = Fixture::over(
        &server_url,
        "log: {level: trace}\naudit: {file: audit.log}\n",
    );
    let replica = fixture.replica();
    let started = replica.provision("i", 0).operation();
    assert_eq!(replica.until_it_ends("i", &started), "succeeded");
    for what in ["cmdline", "environ"] {
        let bytes = std::fs::read(format!("/proc/{}/{what}", replica.0.id()));
        nowhere_in(&bytes.expect("it runs"), what);
    }
    server.kill();
    let mut answers = Vec::new();
    until("a change is sent away", || {
        let response = replica.provision("j", 0);
        answers.push(format!("{response:?}"));
        if response.status == 503 {
            Ok(())
        } else {
            Err(response)
        }
    });
    replica.until_ready_is(503);
    let refused = fixture
        .command()
        .args(["broker", "--config", "sutler.yaml"])
        .args(["--listen", "127.0.0.1:0"])
        .output();
    let refused = refused.expect("the program runs");
    assert_eq!(refused.status.code(), Some(1), "nobody is there");
    nowhere_in(&refused.stderr, "what is said of a server that is away");
    server.start();
    replica.until_ready_is(200);
    nowhere_in(answers.join("\n").as_bytes(), "an answer");
    nowhere_in(replica.admin("stats").to_string().as_bytes(), "statistics");
    let log = replica.0.ended().join("\n");
    assert!(log.contains("ready again"), "the log is not whole");
    nowhere_in(log.as_bytes(), "the log");
    for verb in ["show", "check"] {
        let shown = fixture.command().args(["config", verb]).output();
        let shown = shown.expect("the program runs");
        assert!(shown.status.success(), "{shown:?}");
        nowhere_in(&shown.stdout, "what is shown");
        nowhere_in(&shown.stderr, "what is complained of");
    }
    nowhere_in(&fixture.file("audit.log"), "the audit");
}
