//! The broker dies after each statement once, at the worst moment: the server has executed it, and the broker has
//! not received the reply. It continues after a restart, and nothing is left at the end.

use crate::broker_process::{LOOK_EVERY, Program, SERVICE, SMALL, Start, TIMEOUT};
use crate::fixture::{self, Fixture};
use crate::reply_loss_proxy::ReplyLossProxy;
use crate::sql::Session;
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const PREFIX: &str = "mortal";
/// More statements than a lifecycle has; an endless repetition fails the test.
const STATEMENTS_MAX: usize = 60;

/// A broker that is killed once, when the proxy has dropped a reply, and restarted.
struct KilledBroker<'a> {
    start: Start<'a>,
    program: Program,
    proxy: Arc<ReplyLossProxy>,
    kills_left: u32,
}

impl KilledBroker<'_> {
    fn die_if_it_is_time(&mut self) {
        if self.kills_left > 0 && self.proxy.has_dropped() {
            self.kills_left -= 1;
            self.program.kill_and_wait();
            self.program = self.start.run();
        }
    }

    /// Sends an asynchronous request and polls to its end, across restarts, as a platform would.
    async fn until_done(&mut self, method: Method, path: &str, body: &Value) {
        let ids = format!("service_id={SERVICE}&plan_id={SMALL}&accepts_incomplete=true");
        let (status, reply) = self
            .program
            .ask(method.clone(), &format!("{path}?{ids}"), body)
            .await;
        assert_eq!(status, 202, "{method} {path}: {reply}");
        let began = Instant::now();
        loop {
            self.die_if_it_is_time();
            let poll = format!("{path}/last_operation");
            let (_, polled) = self.program.ask(Method::GET, &poll, &json!({})).await;
            if polled["state"] != "in progress" {
                assert_eq!(polled["state"], "succeeded", "{method} {path}: {polled}");
                return;
            }
            assert!(began.elapsed() < TIMEOUT, "{method} {path}: {polled}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn run_lifecycle(&mut self) {
        let (instance, binding) = ("one", "one/service_bindings/app");
        let ids = json!({ "service_id": SERVICE, "plan_id": SMALL });
        let mut whole = ids.clone();
        whole["organization_guid"] = json!("org");
        whole["space_guid"] = json!("space");
        whole["parameters"] = json!({ "extensions": ["citext"] });
        let change = json!({ "service_id": SERVICE, "parameters": { "extensions": ["hstore"] } });
        self.until_done(Method::PUT, instance, &whole).await;
        self.until_done(Method::PUT, binding, &ids).await;
        let (_, fetched) = self.program.fetch_binding("one", "app").await;
        let mut app = Session::with(&fetched["credentials"]).await;
        app.run("CREATE TABLE t (n int)").await.expect("it may");
        self.until_done(Method::PATCH, instance, &change).await;
        app.run("SELECT ''::hstore")
            .await
            .expect("the extension is there");
        self.until_done(Method::DELETE, binding, &json!({})).await;
        self.until_done(Method::DELETE, instance, &json!({})).await;
    }
}

fn login_and_server(url: &str) -> (&str, &str) {
    let (login, place) = url.rsplit_once('@').expect("a login and a place");
    let (server, _) = place.split_once('/').expect("a place and a database");
    (login, server)
}

/// Runs a whole lifecycle; returns whether the broker died in it.
async fn lifecycle_with_kill(
    n: usize,
    proxy: &Arc<ReplyLossProxy>,
    address: &str,
    folder: &Path,
    url: &str,
) -> bool {
    proxy.drop_reply(n);
    let (login, server) = login_and_server(url);
    let start = Start {
        url: format!("{login}@{address}/postgres"),
        prefix: PREFIX,
        folder,
        attempts: 8,
        // Applications do not use the proxy.
        address: Some(server.to_owned()),
    };
    let program = start.run();
    let mut broker_under_test = KilledBroker {
        start,
        program,
        proxy: proxy.clone(),
        kills_left: 1,
    };
    broker_under_test.run_lifecycle().await;
    broker_under_test.kills_left == 0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_may_die_after_every_statement_and_leaves_nothing() {
    let Some(server) = fixture::own() else {
        return;
    };
    let fixture = Fixture::on(server, PREFIX);
    let url = fixture.server.admin_url().url();
    let (_, server) = login_and_server(&url);
    let (proxy, address) = ReplyLossProxy::to(server.to_owned()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut deaths = 0;
    while lifecycle_with_kill(deaths + 1, &proxy, &address, folder.path(), &url).await {
        deaths += 1;
        assert_eq!(fixture.left().await, (0, 0), "after statement {deaths}");
        assert!(deaths < STATEMENTS_MAX, "it says the same again and again");
    }
    // Every verb has several statements; without the proxy there would be no deaths.
    assert!(deaths > 20, "only {deaths} statements");
}
