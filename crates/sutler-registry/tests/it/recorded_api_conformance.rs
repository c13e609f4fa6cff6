//! Adapters with recorded servers pass the suite: a file at a URL, and OpenShift's image streams as its API
//! documents them.

use crate::fixture::fast_retries;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use sutler_registry::conformance::Candidate;
use sutler_registry::{
    Credentials, Digest, ImageFilter, IndexRegistry, IndexSettings, Item, OpenShiftRegistry,
    OpenShiftSettings, Registry,
};
use sutler_servers::{Intercept, RegistryProxy};

/// Where the manifests of an index are.
#[derive(Clone, Copy, PartialEq)]
enum Manifests {
    Inside,
    Beside,
}

/// A file that lists bundles.
struct Index {
    manifests: Manifests,
    requests: Mutex<Vec<String>>,
    proxy: RegistryProxy,
    registry: IndexRegistry,
    there: Mutex<BTreeMap<String, Value>>,
}

impl Index {
    fn fresh(manifests: Manifests) -> Option<Self> {
        let proxy = RegistryProxy::standalone();
        let settings = IndexSettings {
            name: "list".to_owned(),
            url: format!("{}/bundles.yml", proxy.url()),
            filter: ImageFilter::default(),
            credentials: Credentials::None,
            http: fast_retries(),
        };
        let index = Self {
            manifests,
            requests: Mutex::default(),
            proxy,
            registry: IndexRegistry::new(settings).expect("the settings can be used"),
            there: Mutex::default(),
        };
        index.write(|_| {});
        Some(index)
    }

    fn write(&self, change: impl FnOnce(&mut BTreeMap<String, Value>)) {
        let mut there = self.there.lock().expect("no panic");
        change(&mut there);
        let bundles: Vec<&Value> = there.values().collect();
        // JSON is YAML, too.
        let file = json!({ "bundles": bundles }).to_string();
        let tag = format!("\"{}\"", Digest::of(file.as_bytes()));
        let answer = Intercept::text(&file).with("ETag", &tag);
        self.proxy.respond("GET /bundles.yml", Some(answer));
    }
}

#[async_trait]
impl Candidate for Index {
    fn registry(&self) -> &dyn Registry {
        &self.registry
    }

    async fn put(&self, name: &str, manifest: &str) {
        let image = format!(
            "registry.example/{name}@{}",
            Digest::of(manifest.as_bytes())
        );
        let authentication = match self.manifests {
            Manifests::Inside => json!({ "name": name, "image": image, "manifest": manifest }),
            Manifests::Beside => {
                let path = format!("GET /manifests/{name}.yml");
                self.proxy.respond(&path, Some(Intercept::text(manifest)));
                json!({ "name": name, "image": image, "manifest_url": format!("manifests/{name}.yml"),
                        "manifest_digest": Digest::of(manifest.as_bytes()) })
            }
        };
        self.write(|it| drop(it.insert(name.to_owned(), authentication)));
        drop(self.registry.list().await);
    }

    async fn spoil(&self, name: &str) {
        let authentication =
            json!({ "name": name, "image": "registry.example/x:latest", "manifest": "a: b\n" });
        self.write(|it| drop(it.insert(name.to_owned(), authentication)));
    }

    async fn remove(&self, name: &str) {
        self.write(|it| drop(it.remove(name)));
    }

    async fn break_listings(&self) {
        self.proxy.when("GET /bundles.yml", Intercept::Truncate(20));
    }

    async fn break_item(&self, name: &str) -> bool {
        let path = format!("GET /manifests/{name}.yml");
        self.proxy.when(&path, Intercept::status(503));
        self.manifests == Manifests::Beside
    }

    async fn mend(&self) {
        self.proxy.reset();
    }

    fn reads(&self) -> usize {
        let mut requests = self.requests.lock().expect("no panic");
        requests.extend(self.proxy.requests());
        let is_read = |it: &&String| it.contains("GET /manifests/");
        requests.iter().filter(is_read).count()
    }

    fn item(&self, name: &str) -> Item {
        Item::new(name, "latest")
    }
}

mod by_index {
    use super::Index;

    sutler_registry::registry_conformance!(Index::fresh(super::Manifests::Inside));
}

mod by_index_with_manifests_beside_it {
    use super::Index;

    sutler_registry::registry_conformance!(Index::fresh(super::Manifests::Beside));

    /// Outcome of an index with one odd entry.
    async fn odd(url: &str, digest: &str) -> String {
        let index = Index::fresh(super::Manifests::Beside).expect("a list");
        let manifest = super::Intercept::text("name: x");
        index.proxy.respond("GET /manifests/x.yml", Some(manifest));
        let authentication =
            super::json!({ "name": "x", "manifest_url": url, "manifest_digest": digest });
        index.write(|it| drop(it.insert("x".to_owned(), authentication)));
        let registry = super::Candidate::registry(&index);
        let fetched = registry.fetch(&super::Item::new("x", "latest")).await;
        fetched.expect_err("it is odd").to_string()
    }

    #[tokio::test]
    async fn a_manifest_elsewhere_or_other_than_its_digest_is_not_read() {
        let digest = super::Digest::of(b"name: y").to_string();
        let sentence = odd("manifests/x.yml", &digest).await;
        assert!(
            sentence.contains("another manifest than its digest"),
            "{sentence}"
        );
        let sentence = odd("http://127.0.0.1:1/x.yml", &digest).await;
        assert!(sentence.contains("on another server"), "{sentence}");
        let sentence = odd("manifests/x.yml", "latest").await;
        assert!(sentence.contains("write either `manifest`"), "{sentence}");
    }
}

/// OpenShift's API.
struct Streams {
    proxy: RegistryProxy,
    registry: OpenShiftRegistry,
    there: Mutex<BTreeMap<String, Value>>,
    requests: Mutex<Vec<String>>,
}

const API: &str = "/apis/image.openshift.io/v1/namespaces/shared";

impl Streams {
    fn fresh() -> Option<Self> {
        let proxy = RegistryProxy::standalone();
        let settings = OpenShiftSettings {
            name: "streams".to_owned(),
            url: proxy.url(),
            namespaces: vec!["shared".to_owned()],
            filter: ImageFilter::default(),
            credentials: Credentials::Token("hush".into()),
            http: fast_retries(),
        };
        let missing = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}"#;
        proxy.respond(
            "/imagestream",
            Some(Intercept::Answer {
                status: 404,
                headers: Vec::new(),
                body: missing.to_owned(),
            }),
        );
        let streams = Self {
            proxy,
            registry: OpenShiftRegistry::new(settings).expect("the settings can be used"),
            there: Mutex::default(),
            requests: Mutex::default(),
        };
        streams.write(|_| {});
        Some(streams)
    }

    /// Sets the listing to the current streams, one on the first page and the others on the second.
    fn write(&self, change: impl FnOnce(&mut BTreeMap<String, Value>)) {
        let mut there = self.there.lock().expect("no panic");
        for name in there.keys() {
            self.proxy
                .respond(&format!("{API}/imagestreamtags/{name}:"), None);
        }
        change(&mut there);
        let unknown = "/imagestream";
        let missing = r#"{"kind":"Status","reason":"NotFound","code":404}"#;
        self.proxy.respond(unknown, None);
        let mut streams = Vec::new();
        for (name, image) in there.iter() {
            let digest = image["metadata"]["name"].as_str().expect("a digest");
            let whole = json!({
                "kind": "ImageStreamTag",
                "apiVersion": "image.openshift.io/v1",
                "metadata": { "name": format!("{name}:latest"), "namespace": "shared" },
                "tag": null,
                "generation": 1,
                "image": image,
            });
            let answer = Intercept::text(&whole.to_string());
            let by_tag = format!("{API}/imagestreamtags/{name}:latest");
            let by_digest = format!("{API}/imagestreamimages/{name}@{digest}");
            self.proxy.respond(&by_tag, Some(answer.clone()));
            self.proxy.respond(&by_digest, Some(answer));
            streams.push(json!({
                "metadata": { "name": name, "namespace": "shared" },
                "spec": { "lookupPolicy": { "local": false } },
                "status": {
                    "dockerImageRepository": format!("registry.example:5000/shared/{name}"),
                    "tags": [
                        { "tag": "broken", "items": null },
                        { "tag": "latest", "items": [{ "created": "2020-01-01T00:00:00Z", "generation": 1,
                          "dockerImageReference": image["dockerImageReference"], "image": digest }] },
                    ],
                },
            }));
        }
        let rest = streams.split_off(streams.len().min(1));
        let page = |items: &[Value], next: &str| {
            let page = json!({ "kind": "ImageStreamList", "apiVersion": "image.openshift.io/v1",
                               "metadata": { "resourceVersion": "7", "continue": next }, "items": items });
            Some(Intercept::text(&page.to_string()))
        };
        let listing = format!("{API}/imagestreams?limit=200");
        self.proxy.respond(&listing, None);
        let next = format!("{listing}&continue=more");
        self.proxy.respond(&next, page(&rest, ""));
        self.proxy.respond(&listing, page(&streams, "more"));
        let gone = Intercept::Answer {
            status: 404,
            headers: Vec::new(),
            body: missing.to_owned(),
        };
        self.proxy.respond(unknown, Some(gone));
    }

    fn keep(&self, name: &str, labels: &Value) {
        let config = json!({ "Labels": labels }).to_string();
        let digest = Digest::of(config.as_bytes());
        let image = json!({
            "metadata": { "name": digest },
            "dockerImageReference": format!("registry.example:5000/shared/{name}@{digest}"),
            "dockerImageMetadata": { "kind": "DockerImage", "apiVersion": "1.0", "ContainerConfig": {},
                                     "Config": { "Labels": labels } },
        });
        self.write(|it| drop(it.insert(name.to_owned(), image)));
    }
}

#[async_trait]
impl Candidate for Streams {
    fn registry(&self) -> &dyn Registry {
        &self.registry
    }

    async fn put(&self, name: &str, manifest: &str) {
        let spec = STANDARD.encode(manifest);
        self.keep(
            name,
            &json!({ "com.redhat.apb.spec": spec, "com.redhat.apb.runtime": "2" }),
        );
    }

    async fn spoil(&self, name: &str) {
        self.keep(name, &json!({ "com.redhat.apb.spec": "no base64 at all?" }));
    }

    async fn remove(&self, name: &str) {
        self.write(|it| drop(it.remove(name)));
    }

    async fn break_listings(&self) {
        // The first page is sent, the second is not.
        self.proxy.when("continue=more", Intercept::Cut);
    }

    async fn break_item(&self, name: &str) -> bool {
        self.proxy.when(
            &format!("/imagestreamimages/{name}@"),
            Intercept::status(503),
        );
        true
    }

    async fn mend(&self) {
        self.proxy.reset();
    }

    fn reads(&self) -> usize {
        let mut requests = self.requests.lock().expect("no panic");
        requests.extend(self.proxy.requests());
        let is_read = |it: &&String| it.contains("/imagestreamimages/");
        requests.iter().filter(is_read).count()
    }

    fn item(&self, name: &str) -> Item {
        Item::new(&format!("shared/{name}"), "latest")
    }
}

mod by_image_streams {
    use super::Streams;

    sutler_registry::registry_conformance!(Streams::fresh());
}
