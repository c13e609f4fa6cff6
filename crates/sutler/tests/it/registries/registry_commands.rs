//! Bundles of a real registry, offered by the executable and managed with `sutler registry`.

use crate::http_request::BrokerRequest;
use crate::process::{Broker, folder, sutler};
use serde_json::json;
use std::fs;
use std::path::Path;
use sutler_servers::docker_registry::{self, Image, RegistryAccess};
use sutler_servers::{Demands, Server};

const PASSWORD: &str = "t0ps3cret";

fn manifest(version: &str) -> String {
    format!(
        "version: 1.0\nname: hello-apb\ndescription: Greets.\nbundle_version: {version}\n\
         plans: [{{name: small, description: One.}}]\n"
    )
}

fn configure(folder: &Path, server: &Server) {
    let address = server.address();
    let config = format!(
        "auth: none\nstore: {{url: 'sqlite:sutler.db'}}\n\
         admin: {{users: [{{name: root, password: {PASSWORD}}}]}}\n\
         bundles: {{work: work}}\n\
         refresh: {{grace: 1h}}\n\
         registry:\n  - type: apiv2\n    name: own\n    url: http://{address}\n    \
         tag: {{default: latest, named: [{{hello-apb: [v1.0]}}]}}\n    white_list: ['.*-apb$']\n"
    );
    fs::write(folder.join("sutler.yaml"), config).expect("a file");
}

fn start(folder: &Path) -> Broker {
    Broker::start(folder, &["broker", "--config", "sutler.yaml"])
}

/// Output of `sutler registry`.
fn run_registry(folder: &Path, broker: &Broker, words: &[&str]) -> String {
    let url = format!("http://{}/admin", broker.address());
    let mut command = sutler(folder);
    command.env("SUTLER_ADMIN_PASSWORD", PASSWORD);
    command.arg("registry").args(words);
    command.args(["--url", &url, "--user", "root"]);
    let output = command.output().expect("the program runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {stderr}");
    String::from_utf8(output.stdout).expect("text")
}

fn catalog(broker: &Broker) -> String {
    BrokerRequest::get("/v2/catalog")
        .send(broker.address())
        .text
}

/// The ids of the service that a catalog offers under a name, and of its plan.
fn ids(broker: &Broker, name: &str) -> (String, String) {
    let text = catalog(broker);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let catalog: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let services = catalog["services"].as_array().expect("services");
    let service = services.iter().find(|it| it["name"] == name);
    let service = service.expect("it is offered");
    let text = |value: &serde_json::Value| value.as_str().expect("an id").to_owned();
    (text(&service["id"]), text(&service["plans"][0]["id"]))
}

#[test]
fn bundles_of_a_registry_are_offered_withdrawn_and_served_while_it_is_down() {
    let Some(server) = docker_registry::own(Demands::default(), RegistryAccess::Open) else {
        return;
    };
    let image = |version: &str| Image::bundle(&manifest(version));
    server.push("org/hello-apb", "v1.0", &image("1.0.0"));
    let latest = server.push("org/hello-apb", "latest", &image("1.1.0"));
    server.push("org/no-bundle-apb", "latest", &Image::default());
    let folder = folder();
    configure(folder.path(), &server);
    let broker = start(folder.path());

    let table = run_registry(folder.path(), &broker, &["refresh", "--wait"]);
    assert!(table.starts_with("REGISTRY  ITEMS"), "{table}");
    assert!(table.contains("\nown       2      2        0"), "{table}");
    let (service, plan) = ids(&broker, "hello-apb");
    assert_ne!(ids(&broker, "hello-apb-v1.0").0, service);
    let shown = run_registry(folder.path(), &broker, &["show", "own"]);
    assert!(shown.contains("org/hello-apb:latest  hello-apb"), "{shown}");
    assert!(shown.contains(&latest.digest[..40]), "{shown}");

    let newer = server.push("org/hello-apb", "latest", &image("1.2.0"));
    let planned = run_registry(folder.path(), &broker, &["plan"]);
    assert!(
        planned.contains("replace   own/org/hello-apb:latest"),
        "{planned}"
    );
    assert!(!catalog(&broker).contains("1.2.0"));
    run_registry(folder.path(), &broker, &["refresh", "--wait"]);
    broker.until_logged("replace   own/org/hello-apb:latest");

    server.remove("org/hello-apb", &newer);
    run_registry(folder.path(), &broker, &["refresh", "--wait"]);
    let put = BrokerRequest::new("PUT", "/v2/service_instances/i").json(&json!({
        "service_id": service, "plan_id": plan, "organization_guid": "o", "space_guid": "s",
    }));
    let refused = put.send(broker.address());
    assert_eq!(refused.status, 400, "{}", refused.text);
    let expected = "The service hello-apb was withdrawn at";
    assert!(refused.text.contains(expected), "{}", refused.text);
    let shown = run_registry(folder.path(), &broker, &["show", "own"]);
    assert!(
        shown.contains("org/hello-apb:latest: withdrawn at"),
        "{shown}"
    );
    broker.signal("TERM");
    broker.ended();

    // A broker that starts while its registry is down serves the stored bundles.
    drop(server);
    let broker = start(folder.path());
    assert!(catalog(&broker).contains("hello-apb-v1.0"));
    assert_eq!(
        BrokerRequest::get("/readyz").send(broker.address()).status,
        200
    );
    let table = run_registry(folder.path(), &broker, &["refresh", "--wait"]);
    assert!(table.contains("\nown: the registry own"), "{table}");
    assert!(catalog(&broker).contains("hello-apb-v1.0"));
    let listed = run_registry(folder.path(), &broker, &["list", "-o", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    assert!(
        listed["registries"][0]["failures"].as_u64() >= Some(1),
        "{listed}"
    );
    broker.signal("TERM");
    broker.ended();
}
