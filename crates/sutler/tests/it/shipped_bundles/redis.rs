//! The bundle `redis`: users and keys are counted in the server itself.

use super::fixture::{Fixture, has, passes_its_test, repository_bundle};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use sutler_servers::{Demands, ServerUrl, redis};

/// Responses of the server to commands of a user, one line each.
fn run_commands(at: &ServerUrl, commands: &[&str]) -> String {
    let (name, password) = at.user.clone().expect("a user");
    let mut stream = TcpStream::connect((at.host.as_str(), at.port)).expect("it listens");
    let mut text = format!("AUTH {name} {}\r\n", password.unwrap_or_default());
    for command in commands {
        text.push_str(&format!("{command}\r\n"));
    }
    text.push_str("QUIT\r\n");
    stream.write_all(text.as_bytes()).expect("it hears");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it answers");
    response
}

#[test]
fn the_bundle_redis_keeps_every_rule_and_leaves_the_server_as_it_was() {
    let (Some(server), true) = (
        redis::own(Demands::default()),
        has("python3", "apt-get install python3"),
    ) else {
        return;
    };
    let admin = server.admin_url();
    let there = || run_commands(admin, &["ACL LIST", "KEYS *"]);
    run_commands(admin, &["SET somebody-elses thing"]);
    let before = there();
    let bundle = repository_bundle("redis");
    let secrets = json!({ "redis": { "admin_url": admin.url() } });
    passes_its_test(&bundle, &secrets, &[], 29);
    assert_eq!(there(), before);
    let fixture = Fixture::open(&bundle, &secrets);
    fixture.keeps_every_rule();
    assert_eq!(there(), before);
    serves(&fixture, admin);
    assert_eq!(there(), before);
}

/// A user can access the keys of its instance and no others, while its binding exists.
fn serves(fixture: &Fixture, admin: &ServerUrl) {
    fixture.expect_status(201, "PUT", "i", Value::Null);
    let path = "i/service_bindings/b";
    let bound = fixture.expect_status(201, "PUT", path, Value::Null);
    let text = |key: &str| bound["credentials"][key].as_str().expect(key).to_owned();
    let user = admin.with_user(&text("username"), &text("password"));
    let own = format!("SET {}note kept", text("prefix"));
    let response = run_commands(&user, &[&own, "GET somebody-elses", "ACL LIST"]);
    let lines: Vec<&str> = response.lines().collect();
    assert_eq!(lines[..2], ["+OK", "+OK"], "{response}");
    assert!(lines[2].starts_with("-NOPERM"), "{response}");
    assert!(lines[3].starts_with("-NOPERM"), "{response}");
    fixture.expect_status(200, "DELETE", path, Value::Null);
    let refused = run_commands(&user, &[]);
    assert!(refused.starts_with("-WRONGPASS"), "{refused}");
    assert_eq!(run_commands(admin, &["DBSIZE"]), "+OK\r\n:2\r\n+OK\r\n");
    fixture.expect_status(200, "DELETE", "i", Value::Null);
}
