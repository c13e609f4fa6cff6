//! `sutler config` and `sutler broker --config` as commands.

use crate::http_request::BrokerRequest;
use crate::process::{Broker, folder, run_sutler};

#[test]
fn the_configuration_reference_is_up_to_date() {
    let made = run_sutler(folder().path(), &["config", "reference"]).stdout;
    let kept = include_str!("../../../../docs/configuration.md");
    assert!(
        made == kept,
        "run `cargo run -p sutler -- config reference > docs/configuration.md`"
    );
}

#[test]
fn the_schema_accepts_what_it_describes() {
    let made = run_sutler(folder().path(), &["config", "schema"]);
    let schema: serde_json::Value = serde_json::from_str(&made.stdout).expect("JSON");
    assert_eq!(schema["properties"]["listen"]["format"], "address");
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn a_valid_file_is_reported_with_its_warnings() {
    let folder = folder();
    let text = "listen: 0.0.0.0:80\nauth: none\n";
    std::fs::write(folder.path().join("sutler.yaml"), text).expect("a file");
    let output = run_sutler(folder.path(), &["config", "check"]);
    let expected = "warning: sutler.yaml:1:9: listen lets other machines in, and nobody is asked who they are\nsutler.yaml has no fault\n";
    assert_eq!((output.stdout.as_str(), output.code), (expected, Some(0)));
}

#[test]
fn every_fault_of_an_invalid_file_is_printed() {
    let folder = folder();
    let text = "lisen: 127.0.0.1:80\nusers:\n- {name: a, password: '${env:NOT_SET}'}\n- {name: b, password: '${file:nowhere}'}\ntls: {certificate: none.pem, key: none.key}\ncatalog: {services: [{name: x}]}\n";
    let path = folder.path().join("broker.yaml");
    std::fs::write(&path, text).expect("a file");
    let one = run_sutler(folder.path(), &["config", "check", "broker.yaml"]);
    let expected = "sutler: the configuration has 1 fault:\n  broker.yaml:1:1: lisen is not a key; did you mean `listen`?\n";
    assert_eq!((one.stderr.as_str(), one.code), (expected, Some(1)));
    std::fs::write(&path, text.replace("lisen", "listen")).expect("a file");
    let two = run_sutler(folder.path(), &["config", "check", "broker.yaml"]);
    assert_eq!(two.stderr, include_str!("cli_messages/faulty-config.txt"));
    assert_eq!(two.code, Some(1));
}

#[test]
fn an_invalid_hash_is_reported_without_its_value() {
    let folder = folder();
    let text = "users: [{name: a, password_hash: hush}]\n";
    std::fs::write(folder.path().join("sutler.yaml"), text).expect("a file");
    let output = run_sutler(folder.path(), &["config", "check"]);
    let place = "sutler.yaml:1:34: users[0].password_hash cannot be used: ";
    assert!(output.stderr.contains(place), "{}", output.stderr);
    assert!(!output.stderr.contains("hush "), "{}", output.stderr);
    assert_eq!(output.code, Some(1));
}

#[test]
fn a_broker_applies_its_configuration() {
    let folder = folder();
    std::fs::write(folder.path().join("password"), "hush\n").expect("a file");
    let text = "users: [{name: me, password: '${file:password}'}]\nstore: {url: 'memory:'}\ncompat: {missing_version: 412}\n";
    std::fs::write(folder.path().join("sutler.yaml"), text).expect("a file");
    let broker = Broker::start(folder.path(), &["broker", "--config", "sutler.yaml"]);
    let status = |credentials: &str| {
        let ask = BrokerRequest::get("/v2/catalog")
            .user(credentials)
            .without_version();
        ask.send(broker.address()).status
    };
    assert_eq!(status("me:wrong"), 401);
    assert_eq!(status("me:hush"), 412);
    assert!(!folder.path().join("sutler.db").exists());
}

#[test]
fn a_spring_application_file_is_served_unchanged() {
    let folder = folder();
    let text = include_str!("cli_messages/application.yaml");
    std::fs::write(folder.path().join("application.yaml"), text).expect("a file");
    let icon = b"\x89PNG\r\n\x1a\nicon";
    std::fs::write(folder.path().join("serviceA.png"), icon).expect("a file");
    let arguments = ["config", "show", "application.yaml", "--no-auth"];
    let output = run_sutler(folder.path(), &arguments);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("    age: 10d "), "{}", output.stdout);
    let arguments = ["broker", "--config", "application.yaml", "--no-auth"];
    drop(Broker::start(folder.path(), &arguments));
}
