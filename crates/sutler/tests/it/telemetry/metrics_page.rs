//! The metrics page, checked by promtool and scraped by a real Prometheus.

use super::{ObservedBroker, tool, until};
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A Prometheus for one test, with temporary data.
struct Prometheus {
    process: Child,
    port: u16,
}

impl Prometheus {
    fn start(program: &Path, folder: &Path, target: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let config = format!(
            "global: {{ scrape_interval: 1s }}\nscrape_configs:\n  - job_name: sutler\n    static_configs: [{{ targets: [\"{target}\"] }}]\n"
        );
        std::fs::write(folder.join("prometheus.yml"), config).expect("it can be written");
        let process = Command::new(program)
            .current_dir(folder)
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus runs");
        Self { process, port }
    }

    /// The value of an instant query, if it has one.
    async fn value(&self, client: &reqwest::Client, query: &str) -> Option<f64> {
        let url = format!("http://127.0.0.1:{}/api/v1/query", self.port);
        let answer = client.get(url).query(&[("query", query)]).send().await;
        let answer: Value = answer.ok()?.json().await.ok()?;
        let text = answer["data"]["result"][0]["value"][1].as_str()?;
        text.parse().ok()
    }

    /// Waits until a query has this value.
    async fn comes_to(&self, client: &reqwest::Client, query: &str, expected: f64) {
        let poll = async || {
            let value = self.value(client, query).await;
            value.filter(|it| *it == expected)
        };
        until(poll, || format!("{query} never came to {expected}")).await;
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_real_prometheus_reads_the_metrics() {
    let Some(program) = tool("prometheus") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["--in-memory", "--public-metrics"];
    let broker = ObservedBroker::start(folder.path(), &arguments, &[]).await;
    let prometheus = Prometheus::start(&program, folder.path(), &broker.address);
    assert_eq!(broker.provision("one", json!({}), &[]).await, 201);
    assert_eq!(
        broker.provision("two", json!({"fail": "No."}), &[]).await,
        500
    );
    assert_eq!(broker.get("/nowhere").await.0, 404);
    let slow = json!({"delay_ms": 60_000});
    let status = broker
        .put("three", slow, &[], "?accepts_incomplete=true")
        .await;
    assert_eq!(status, 202);
    let client = &broker.client;
    let queries = [
        ("up", 1.0),
        ("sutler_ready", 1.0),
        (
            r#"sutler_http_requests_total{route="provision",status="201"}"#,
            1.0,
        ),
        (
            r#"sutler_http_requests_total{route="provision",status="500"}"#,
            1.0,
        ),
        (
            r#"sutler_http_requests_total{route="nowhere",status="404"}"#,
            1.0,
        ),
        (
            r#"sutler_http_request_duration_seconds_count{route="provision"}"#,
            3.0,
        ),
        (r#"sutler_operations_accepted_total{kind="provision"}"#, 3.0),
        (
            r#"sutler_operations_finished_total{kind="provision",outcome="failed"}"#,
            1.0,
        ),
        (
            r#"sutler_operation_duration_seconds_count{kind="provision"}"#,
            2.0,
        ),
        (r#"sutler_operations_unfinished{state="running"}"#, 1.0),
        (
            r#"sutler_store_call_duration_seconds_count{call="commit"} > bool 5"#,
            1.0,
        ),
        ("sutler_lease_losses_total", 0.0),
        ("sutler_operations_oldest_age_seconds > bool 1", 1.0),
    ];
    for (query, expected) in queries {
        prometheus.comes_to(client, query, expected).await;
    }
}

#[tokio::test]
async fn promtool_accepts_the_metrics() {
    let Some(promtool) = tool("promtool") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["--public-metrics", "--db", "numbers.db"];
    let broker = ObservedBroker::start(folder.path(), &arguments, &[]).await;
    assert_eq!(broker.provision("one", json!({}), &[]).await, 201);
    let counted = async || {
        let (_, page) = broker.get("/metrics").await;
        let there = page.contains("sutler_operations_unfinished");
        there.then_some(page)
    };
    let page = until(counted, || "the queues were not counted".to_owned()).await;
    assert!(
        page.contains("sutler_store_commit_group_size_bucket"),
        "{page}"
    );
    let mut check = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool runs");
    let mut stdin = check.stdin.take().expect("it is piped");
    stdin.write_all(page.as_bytes()).expect("it reads");
    drop(stdin);
    let output = check.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}

#[tokio::test]
async fn rejected_requests_are_counted_and_shown_to_operators() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("sutler.yaml");
    let text = "store: { url: 'memory:' }\nlimits: { body: 1KiB }\nadmin: { users: [{ name: ops, password: a long one }] }\n";
    std::fs::write(&config, text).expect("it can be written");
    let arguments = ["--config", config.to_str().expect("a path of text")];
    let broker = ObservedBroker::start(folder.path(), &arguments, &[]).await;
    let get_metrics = async |password: &str| {
        let request = broker.client.get(broker.url("/admin/metrics"));
        let answer = request.basic_auth("ops", Some(password)).send().await;
        let answer = answer.expect("an answer");
        (answer.status(), answer.text().await.expect("a text"))
    };
    assert_eq!(broker.get("/admin/metrics").await.0, 401);
    assert_eq!(get_metrics("a wrong one").await.0, 401);
    let large = json!({ "fail": "x".repeat(2000) });
    assert_eq!(broker.provision("one", large, &[]).await, 413);
    let (status, page) = get_metrics("a long one").await;
    assert_eq!(status, 200, "{page}");
    for series in [
        r#"sutler_auth_failures_total{reason="missing"} 1"#,
        r#"sutler_auth_failures_total{reason="credentials"} 1"#,
        r#"sutler_http_requests_limited_total{reason="body_size"} 1"#,
    ] {
        assert!(page.lines().any(|line| line == series), "{series}: {page}");
    }
    let open = page
        .lines()
        .find_map(|line| line.strip_prefix("sutler_http_connections_open "));
    assert!(open.is_some_and(|it| it != "0"), "{page}");
}

#[tokio::test]
async fn external_ids_create_no_series() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["--in-memory", "--public-metrics"];
    let broker = ObservedBroker::start(folder.path(), &arguments, &[]).await;
    let one = series(&broker).await;
    for n in 0..50 {
        broker
            .get(&format!("/v2/service_instances/id-{n}?x={n}"))
            .await;
        broker.get(&format!("/somewhere/{n}")).await;
        let name = format!("request-{n}");
        let headers = [("X-Broker-API-Request-Identity", name.as_str())];
        broker
            .provision(&format!("id-{n}"), json!({}), &headers)
            .await;
    }
    let names: Vec<String> = series(&broker).await;
    assert!(names.len() > one.len());
    assert!(
        names
            .iter()
            .all(|it| !it.contains("id-") && !it.contains("request-4")),
        "{names:#?}"
    );
    assert!(names.len() < 400, "{} series", names.len());
}

/// Every series on the page, without its value.
async fn series(broker: &ObservedBroker) -> Vec<String> {
    let (_, page) = broker.get("/metrics").await;
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()))
        .collect()
}
