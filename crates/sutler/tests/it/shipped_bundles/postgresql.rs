//! The bundle `postgresql`: databases and roles are counted in the server itself.

use super::fixture::{Fixture, passes_its_test, repository_bundle};
use serde_json::{Value, json};
use std::process::Command;
use sutler_servers::{Demands, ServerUrl, find_programs, postgres};

/// Everything that an instance or a binding could leave behind.
const THERE: &str = "SELECT 'database ' || datname FROM pg_database \
    UNION SELECT 'role ' || rolname FROM pg_roles \
    UNION SELECT 'member ' || roleid::regrole || ' of ' || member::regrole FROM pg_auth_members ORDER BY 1";

/// The rows of a statement, or the error of the server.
fn run_sql(at: &ServerUrl, statement: &str) -> Result<String, String> {
    let folder = find_programs(&["psql"], &["/usr/lib/postgresql"]).expect("psql");
    let (name, password) = at.user.clone().expect("a user");
    let ended = Command::new(folder.join("psql"))
        .args([
            "-XAtq",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            &at.host,
            "-U",
            &name,
        ])
        .args(["-p", &at.port.to_string(), "-d", &at.path, "-c", statement])
        .env("PGPASSWORD", password.unwrap_or_default())
        .output()
        .expect("psql runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    match ended.status.success() {
        true => Ok(text(ended.stdout)),
        false => Err(text(ended.stderr)),
    }
}

#[test]
fn the_bundle_postgresql_keeps_every_rule_and_leaves_the_server_as_it_was() {
    let Some(server) = postgres::own(Demands::default()) else {
        return;
    };
    let admin = server.admin_url();
    let there = || run_sql(admin, THERE).expect("a list");
    let before = there();
    let postgresql = repository_bundle("postgresql");
    let secrets = json!({ "postgresql": { "admin_url": admin.url() } });
    passes_its_test(&postgresql, &secrets, &[], 29);
    assert_eq!(there(), before);
    let fixture = Fixture::open(&postgresql, &secrets);
    fixture.keeps_every_rule();
    assert_eq!(there(), before);
    serves(&fixture, admin);
    assert_eq!(there(), before);
}

/// Objects of a binding outlive it, but its login does not.
fn serves(fixture: &Fixture, admin: &ServerUrl) {
    fixture.expect_status(201, "PUT", "i", Value::Null);
    let login = |binding: &str, parameters: Value| {
        let path = format!("i/service_bindings/{binding}");
        let bound = fixture.expect_status(201, "PUT", &path, json!({ "parameters": parameters }));
        let text = |key: &str| bound["credentials"][key].as_str().expect(key).to_owned();
        let url = admin.with_user(&text("username"), &text("password"));
        url.at(&text("database"))
    };
    let writer = login("writer", json!({}));
    run_sql(&writer, "CREATE TABLE notes (note text)").expect("it may");
    run_sql(&writer, "INSERT INTO notes VALUES ('kept')").expect("it may");
    let reader = login("reader", json!({ "read_only": true }));
    fixture.expect_status(200, "DELETE", "i/service_bindings/writer", Value::Null);
    run_sql(&writer, "SELECT 1").expect_err("its login is gone");
    assert_eq!(
        run_sql(&reader, "SELECT note FROM notes").as_deref(),
        Ok("kept\n")
    );
    let refused = run_sql(&reader, "INSERT INTO notes VALUES ('no')").expect_err("it only reads");
    assert!(refused.contains("permission denied"), "{refused}");
    // The remaining binding is removed with the instance.
    fixture.expect_status(200, "DELETE", "i", Value::Null);
    run_sql(&reader, "SELECT 1").expect_err("its database is gone");
}
