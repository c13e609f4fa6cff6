//! Services that developers push, with a real registry and real containers; and which configurations accept
//! pushes.

use crate::http_request::{BrokerRequest, BrokerResponse, base64};
use crate::process::{Broker, folder};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use sutler_servers::docker_registry::{self, Image, RegistryAccess};
use sutler_servers::{Demands, podman};

const USER: &str = "me:hush-hush";
/// The script of every action of the pushed image.
const SCRIPT: &str = r#"printf '{"from":"a push"}' > "$SUTLER_RESULT_DIR/credentials.json""#;

fn manifest(name: &str) -> String {
    format!(
        "version: 1.0\nname: {name}\ndescription: Greets.\nbindable: true\n\
         plans: [{{name: small, description: One.}}]\n"
    )
}

fn start(folder: &Path, config: &str) -> Broker {
    let config = format!(
        "users: [{{name: me, password: hush-hush}}]\nstore: {{url: 'sqlite:sutler.db'}}\n{config}"
    );
    fs::write(folder.join("sutler.yaml"), config).expect("a file");
    Broker::start(folder, &["broker", "--config", "sutler.yaml"])
}

fn stop(broker: Broker) {
    broker.signal("TERM");
    broker.ended();
}

fn send(broker: &Broker, request: BrokerRequest) -> BrokerResponse {
    request.user(USER).send(broker.address())
}

/// A push as old tools send it: without a header of the specification.
fn push(manifest: &str) -> BrokerRequest {
    let form = base64(manifest).replace('+', "%2B").replace('=', "%3D");
    BrokerRequest::new("POST", "/v2/apb")
        .without_version()
        .form(&format!("apbSpec={form}"))
}

fn body(answer: &BrokerResponse) -> Value {
    let body = answer.text.split_once("\r\n\r\n").map_or("", |it| it.1);
    serde_json::from_str(body).unwrap_or_default()
}

fn names(broker: &Broker) -> Vec<String> {
    let catalog = body(&send(broker, BrokerRequest::get("/v2/catalog")));
    let services = catalog["services"].as_array().expect("services");
    let names = services.iter().filter_map(|it| it["name"].as_str());
    names.map(str::to_owned).collect()
}

fn names_until(broker: &Broker, expected: &[&str]) {
    let began = std::time::Instant::now();
    while names(broker) != expected {
        let waited = began.elapsed();
        assert!(waited.as_secs() < 60, "{:?} are offered", names(broker));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Provisions the service; its developer deletes it, and the instance keeps working.
fn run_lifecycle(broker: &Broker, pushed: &Value) {
    let ids = json!({ "service_id": pushed["id"], "plan_id": pushed["plans"][0]["id"] });
    let instance = "/v2/service_instances/i";
    let made = send(
        broker,
        BrokerRequest::new("PUT", instance).json(&json!({
            "service_id": ids["service_id"], "plan_id": ids["plan_id"],
            "organization_guid": "o", "space_guid": "s",
        })),
    );
    assert_eq!(made.status, 201, "{}", made.text);
    let id = pushed["id"].as_str().expect("an id");
    let gone = send(
        broker,
        BrokerRequest::new("DELETE", &format!("/v2/apb/{id}")),
    );
    assert_eq!(gone.status, 204, "{}", gone.text);
    assert_eq!(names(broker), ["later-apb", "listed-apb"]);
    // The instance still uses it.
    let bound = BrokerRequest::new("PUT", &format!("{instance}/service_bindings/b")).json(&ids);
    let bound = send(broker, bound);
    assert_eq!(bound.status, 201, "{}", bound.text);
    assert_eq!(body(&bound)["credentials"]["from"], "a push");
    let plan = ids["plan_id"].as_str().expect("an id");
    let query = format!("service_id={id}&plan_id={plan}");
    for path in [
        format!("{instance}/service_bindings/b"),
        instance.to_owned(),
    ] {
        let removed = send(
            broker,
            BrokerRequest::new("DELETE", &format!("{path}?{query}")),
        );
        assert_eq!(removed.status, 200, "{}", removed.text);
    }
}

/// Regression: R22.
#[test]
fn a_pushed_service_stays_next_to_a_registry_and_runs() {
    let Some(server) = docker_registry::own(Demands::default(), RegistryAccess::Open) else {
        return;
    };
    let Some(engine) = podman::shared().filter(|it| it.is_own()) else {
        return;
    };
    let image = engine.image(&format!("pushed-{}", server.admin_url().port), SCRIPT);
    server.push(
        "org/listed-apb",
        "latest",
        &Image::bundle(&manifest("listed-apb")),
    );
    let folder = folder();
    let (socket, address) = (engine.socket.display(), server.address());
    let config = format!(
        "bundles: {{work: work, container: {{socket: '{socket}', network: none}}, \
         compat: {{dev_broker: true}}}}\n\
         registry: [{{type: apiv2, name: own, url: 'http://{address}'}}]\n"
    );
    let broker = start(folder.path(), &config);
    names_until(&broker, &["listed-apb"]);

    let manifest = format!("{}image: {image}\n", manifest("pushed-apb"));
    let stranger = push(&manifest).user("me:wrong").send(broker.address());
    assert_eq!(stranger.status, 401, "{}", stranger.text);
    let pushed = send(&broker, push(&manifest));
    assert_eq!(pushed.status, 200, "{}", pushed.text);
    let pushed = body(&pushed)["services"][0].clone();
    assert_eq!(pushed["name"], "pushed-apb");
    assert_eq!(names(&broker), ["pushed-apb", "listed-apb"]);

    // A refresh, requested as by old tools, adds new bundles and removes none.
    server.push(
        "org/later-apb",
        "latest",
        &Image::bundle(&self::manifest("later-apb")),
    );
    let bootstrap = send(
        &broker,
        BrokerRequest::new("POST", "/v2/bootstrap").without_version(),
    );
    assert_eq!(bootstrap.status, 200, "{}", bootstrap.text);
    assert_eq!(body(&bootstrap), json!({ "msg": "Bootstrap job started" }));
    names_until(&broker, &["pushed-apb", "later-apb", "listed-apb"]);
    stop(broker);
    drop(server);
    let broker = start(folder.path(), &config);
    assert_eq!(names(&broker), ["pushed-apb", "later-apb", "listed-apb"]);

    run_lifecycle(&broker, &pushed);
    stop(broker);
    let _ = engine.podman(&["image", "rm", "--force", &image]);
}

#[test]
fn paths_of_automation_broker_exist_only_if_configured() {
    let folder = folder();
    fs::create_dir(folder.path().join("bundles")).expect("a folder");
    let requests = || {
        [
            BrokerRequest::new("POST", "/v2/bootstrap"),
            push(&manifest("pushed-apb")),
            BrokerRequest::new("DELETE", "/v2/apb"),
            BrokerRequest::new("DELETE", "/v2/apb/x"),
        ]
    };
    for (compat, statuses, expected) in [
        ("{}", [404, 404, 404, 404], "There is nothing at this path"),
        (
            "{registry: dh}",
            [400, 404, 404, 404],
            "There is no registry",
        ),
        (
            "{dev_broker: true}",
            [400, 200, 204, 404],
            "There is no registry",
        ),
    ] {
        let config = format!("bundles: {{folder: bundles, work: work, compat: {compat}}}\n");
        let broker = start(folder.path(), &config);
        let answers = requests().map(|request| send(&broker, request));
        let found = [0, 1, 2, 3].map(|nth: usize| answers[nth].status);
        assert_eq!(found, statuses, "{compat}");
        assert!(answers[0].text.contains(expected), "{}", answers[0].text);
        stop(broker);
    }
}
