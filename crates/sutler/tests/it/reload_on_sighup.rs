//! SIGHUP to a real process: applied settings, settings that stay, and log lines about them.

use crate::http_request::BrokerRequest;
use crate::process::{Broker, folder, run_sutler};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Log line at the end of a reload.
const DONE: &str = "the configuration was reloaded";

/// Number of reloads under load.
const RELOADS: usize = 20;

/// As many requests as a fast machine can send.
const NO_RATE_LIMIT: &str = "limits: {rate_per_caller: 0}\n";

/// Metrics without a password.
const METRICS: &str = "metrics: {public: true}\n";

const INSTANCE: &str = "/v2/service_instances/i";

fn write(folder: &Path, name: &str, text: &str) {
    // Renamed into place, so that a partial file is never read.
    let made = folder.join("made");
    std::fs::write(&made, text).expect("a file");
    std::fs::rename(made, folder.join(name)).expect("it moves");
}

fn catalog(name: &str) -> String {
    format!(
        "services: [{{id: {name}, name: {name}, description: d, bindable: true, plans: [{{id: {name}-p, name: p, description: d}}]}}]\n"
    )
}

fn config(password: &str, more: &str) -> String {
    format!(
        "users: [{{name: me, password: {password}}}, {{name: other, password: other}}]\ncatalog: {{file: catalog.yaml}}\nstore: {{url: 'memory:'}}\n{more}"
    )
}

fn started(folder: &Path) -> Broker {
    write(folder, "catalog.yaml", &catalog("one"));
    write(folder, "sutler.yaml", &config("first", METRICS));
    Broker::start(folder, &["broker", "--config", "sutler.yaml"])
}

fn get_catalog(broker: &Broker, pair: &str) -> (u16, String) {
    let answer = BrokerRequest::get("/v2/catalog")
        .user(pair)
        .send(broker.address());
    (answer.status, answer.text)
}

#[test]
fn users_and_catalog_change_on_sighup_and_changes_that_need_a_restart_are_logged() {
    let folder = folder();
    let broker = started(folder.path());
    let body = json!({ "service_id": "one", "plan_id": "one-p", "organization_guid": "o", "space_guid": "s" });
    let made = BrokerRequest::new("PUT", INSTANCE)
        .user("me:first")
        .json(&body);
    assert_eq!(made.send(broker.address()).status, 201);
    write(folder.path(), "catalog.yaml", &catalog("two"));
    let more = format!("{METRICS}drain: 1m\nlisten: 127.0.0.1:1\nlog: {{level: debug}}\n");
    write(folder.path(), "sutler.yaml", &config("second", &more));
    broker.signal("HUP");
    let log = broker.until_logged(DONE);
    // The listen address comes from a flag, before and after.
    let restart = log.iter().find(|it| it.contains("restart to apply"));
    let restart = restart.expect("it is said");
    assert!(restart.ends_with("restart to apply: drain"), "{restart}");
    assert_eq!(get_catalog(&broker, "me:first").0, 401);
    let (status, text) = get_catalog(&broker, "me:second");
    assert_eq!(status, 200, "{text}");
    // A client that disconnects during a request is logged at that level only.
    let mut leaves = std::net::TcpStream::connect(broker.address()).expect("it listens");
    std::io::Write::write_all(&mut leaves, b"nothing of the kind\r\n\r\n").expect("it is sent");
    drop(leaves);
    broker.until_logged("DEBUG");
    assert!(
        text.contains("\"two\"") && !text.contains("\"one\""),
        "{text}"
    );
}

#[test]
fn a_file_with_faults_changes_nothing_and_every_fault_is_logged() {
    let folder = folder();
    let broker = started(folder.path());
    write(folder.path(), "catalog.yaml", &catalog("two"));
    write(
        folder.path(),
        "sutler.yaml",
        &config("second", "lisen: x\n"),
    );
    broker.signal("HUP");
    let log = broker.until_logged("not reloaded");
    let fault = "sutler.yaml:4:1: lisen is not a key; did you mean `listen`?";
    assert!(log.iter().any(|it| it.contains(fault)), "{log:#?}");
    assert!(!log.iter().any(|it| it.contains("second")), "{log:#?}");
    write(folder.path(), "sutler.yaml", &config("second", ""));
    write(folder.path(), "catalog.yaml", "services: [{name: x}]\n");
    broker.signal("HUP");
    let log = broker.until_logged("not reloaded");
    assert!(
        log.iter().any(|it| it.contains("catalog.yaml:1:12")),
        "{log:#?}"
    );
    let (status, text) = get_catalog(&broker, "me:first");
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("\"one\""), "{text}");
    assert_eq!(get_catalog(&broker, "me:second").0, 401);
    let numbers = BrokerRequest::get("/metrics").send(broker.address()).text;
    let failed = |line: &&str| {
        line.contains("reloads") && line.contains("configuration") && line.contains("failed")
    };
    let line = numbers.lines().find(failed).unwrap_or_default();
    assert!(line.ends_with(" 2"), "{line:?} of {numbers}");
}

#[test]
fn a_reload_under_load_drops_no_request() {
    let folder = folder();
    write(folder.path(), "catalog.yaml", &catalog("one"));
    let text = config("first", NO_RATE_LIMIT);
    write(folder.path(), "sutler.yaml", &text);
    let broker = Broker::start(folder.path(), &["broker", "--config", "sutler.yaml"]);
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let address = broker.address();
    std::thread::scope(|scope| {
        let load = || {
            let mut wrong = Vec::new();
            while !over.load(Ordering::Relaxed) && wrong.is_empty() {
                let request = BrokerRequest::get("/v2/catalog").user("other:other");
                match request.try_send(address) {
                    Ok(answer) if answer.status == 200 => {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(answer) => wrong.push(answer.text),
                    Err(error) => wrong.push(error.to_string()),
                }
            }
            wrong
        };
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(load)).collect();
        // Stops the clients if something below fails.
        let reloads = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for nth in 0..RELOADS {
                let name = ["one", "two"][nth % 2];
                write(folder.path(), "catalog.yaml", &catalog(name));
                let text = config(&format!("password-{nth}"), NO_RATE_LIMIT);
                write(folder.path(), "sutler.yaml", &text);
                broker.signal("HUP");
                broker.until_logged(DONE);
                assert_eq!(get_catalog(&broker, &format!("me:password-{nth}")).0, 200);
            }
        }));
        over.store(true, Ordering::Relaxed);
        for client in clients {
            let wrong = client.join().expect("it ends");
            assert!(wrong.is_empty(), "{:?}", wrong.first());
        }
        reloads.expect("every reload is seen");
    });
    assert!(
        answered.load(Ordering::Relaxed) >= RELOADS,
        "there was no load"
    );
}

/// A broker over a file, with the keys of `one.key`.
fn started_over_a_file(folder: &Path) -> Broker {
    write(folder, "catalog.yaml", &catalog("one"));
    write(folder, "sutler.yaml", &file_config("one.key", ""));
    Broker::start(folder, &["broker", "--config", "sutler.yaml"])
}

fn file_config(key_file: &str, more: &str) -> String {
    format!(
        "auth: none\ncatalog: {{file: catalog.yaml}}\nstore: {{url: 'sqlite:one.db', key_file: {key_file}}}\n{more}"
    )
}

/// Log line about keys that were read.
const KEYS: &str = "the keys of the store were read again";

#[test]
fn every_reload_reads_the_key_file_of_the_start() {
    let folder = folder();
    let broker = started_over_a_file(folder.path());
    let make = ["store", "keys", "make", "--key-file", "other.key"];
    let made = run_sutler(folder.path(), &[&make[..], &["--id", "k9"]].concat());
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    write(folder.path(), "sutler.yaml", &file_config("other.key", ""));
    for _ in 0..3 {
        broker.signal("HUP");
        let lines = broker.until_logged(DONE);
        let keys = lines.iter().find(|it| it.contains(KEYS));
        let keys = keys.expect("the keys are read");
        assert!(keys.contains("seals=k1 keys=1"), "{keys}");
        let restart = "restart to apply: store.key_file";
        assert!(lines.iter().any(|it| it.ends_with(restart)), "{lines:#?}");
    }
}

#[test]
fn keys_are_read_again_though_the_configuration_has_faults() {
    let folder = folder();
    let broker = started_over_a_file(folder.path());
    let make = ["store", "keys", "make", "--key-file", "one.key"];
    let made = run_sutler(folder.path(), &make);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let faulty = file_config("one.key", "lisen: x\n");
    write(folder.path(), "sutler.yaml", &faulty);
    broker.signal("HUP");
    let lines = broker.until_logged("not reloaded: the configuration has faults");
    let keys = lines.iter().find(|it| it.contains(KEYS));
    let keys = keys.expect("the keys are read");
    assert!(keys.contains("seals=k1 keys=2"), "{keys}");
}

/// Writes a new certificate for this machine, and its key.
fn certify(folder: &Path) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let made = made.expect("a certificate");
    write(folder, "tls.key", &made.signing_key.serialize_pem());
    write(folder, "tls.pem", &made.cert.pem());
}

/// The status that curl gets if it trusts only this certificate; 0 without a response.
fn status_trusting(certificate: &Path, broker: &Broker) -> u16 {
    let port = broker.address().rsplit(':').next().unwrap_or_default();
    let output = std::process::Command::new("curl")
        .args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "--cacert"])
        .arg(certificate)
        .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
        .args(["-u", "me:first", "-H", "X-Broker-API-Version: 2.17"])
        .arg(format!("https://localhost:{port}/v2/catalog"))
        .output();
    let text = String::from_utf8(output.expect("curl runs").stdout);
    text.ok().and_then(|it| it.parse().ok()).unwrap_or_default()
}

#[test]
fn a_new_certificate_is_served_after_sighup_and_an_invalid_one_is_not() {
    let folder = folder();
    let (here, current) = (folder.path(), folder.path().join("tls.pem"));
    certify(here);
    let old = here.join("old.pem");
    std::fs::copy(&current, &old).expect("a copy");
    write(here, "catalog.yaml", &catalog("one"));
    let tls = "tls: {certificate: tls.pem, key: tls.key}\n";
    write(here, "sutler.yaml", &config("first", tls));
    let broker = Broker::start(here, &["broker", "--config", "sutler.yaml"]);
    assert_eq!(status_trusting(&old, &broker), 200);
    certify(here);
    broker.signal("HUP");
    broker.until_logged(DONE);
    assert_eq!(status_trusting(&old, &broker), 0);
    assert_eq!(status_trusting(&current, &broker), 200);
    let good = here.join("good.pem");
    std::fs::copy(&current, &good).expect("a copy");
    write(here, "tls.pem", "nothing of the kind\n");
    broker.signal("HUP");
    broker.until_logged("not reloaded");
    assert_eq!(status_trusting(&good, &broker), 200);
}
