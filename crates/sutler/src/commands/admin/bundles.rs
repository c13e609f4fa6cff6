//! `sutler admin bundles`: the offered bundles with their versions, and the faults of the others.

use super::AdminOutput;
use super::client::AdminClient;
use super::error::AdminError;
use super::list::{print, shown};
use super::table::{self, ListTable};
use serde_json::Value;
use std::fmt::Write as _;

const BUNDLES: ListTable = ListTable {
    path: "bundles",
    columns: &[
        ("BUNDLE", "name"),
        ("VERSION", "version"),
        ("STATE", "state"),
        ("SERVICE", "service_id"),
        ("FROM", "from"),
        ("DIGEST", "digest"),
    ],
    names: &["name"],
};

pub(super) async fn run(client: &AdminClient, output: AdminOutput) -> Result<(), AdminError> {
    let answer = client.get(BUNDLES.path, &[]).await?;
    match output {
        AdminOutput::Json => shown(output, &answer),
        AdminOutput::Name => print(&table::names(&BUNDLES, items(&answer))),
        AdminOutput::Table => print(&text(&answer)),
    }
}

/// A table, and below it every fault in full.
fn text(answer: &Value) -> String {
    let mut text = table::rows(&BUNDLES, items(answer));
    for item in items(answer) {
        let mark = |key: &str| item["mark"][key].as_str();
        if let (Some(at), Some(reason), Some(until)) = (mark("at"), mark("reason"), mark("until")) {
            let from = item["from"].as_str().unwrap_or_default();
            let _ = write!(
                text,
                "\n{from}: withdrawn at {at} ({reason}), kept until {until} at least\n"
            );
        }
    }
    let faults = answer["faults"].as_array().into_iter().flatten();
    for fault in faults.filter_map(Value::as_str) {
        let _ = write!(text, "\nfault: {fault}\n");
    }
    text
}

fn items(answer: &Value) -> &[Value] {
    answer["items"].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::text;
    use serde_json::json;

    #[test]
    fn faults_are_shown_in_full() {
        let fault = format!(
            "/b/two: bundle.yml:3: {} (it is not offered)",
            "x".repeat(200)
        );
        let answer = json!({
            "items": [{
                "name": "one", "version": null, "service_id": "one-id", "state": "offered",
                "from": "/b/one", "folder": "/b/one", "digest": "sha256:abc",
            }],
            "faults": [fault],
        });
        let expected = format!(
            "BUNDLE  VERSION  STATE    SERVICE  FROM    DIGEST\none     -        offered  one-id   /b/one  sha256:abc\n\nfault: {fault}\n"
        );
        assert_eq!(text(&answer), expected);
    }

    #[test]
    fn bundles_of_folders_and_of_registries_are_one_table() {
        let bundle = |name: &str, version: &str, state: &str, from: &str| {
            json!({
                "name": name, "version": version, "service_id": format!("{name}-id"), "state": state,
                "from": from, "digest": "sha256:abc",
            })
        };
        let mut gone = bundle("hello", "1.0.0", "withdrawn", "dh/org/hello:v1.0");
        gone["mark"] = json!({ "reason": "absent", "at": "T1", "until": "T2" });
        let answer = json!({
            "items": [
                bundle("one", "0.1.0", "offered", "/b/one"),
                bundle("hello", "1.1.0", "offered", "dh/org/hello:latest"),
                gone,
                bundle("one", "9.0.0", "left-out", "dh/org/one:latest"),
            ],
            "faults": ["dh/org/none:latest: no manifest; add one (it is not offered)"],
        });
        let expected = "\
BUNDLE  VERSION  STATE      SERVICE   FROM                 DIGEST
one     0.1.0    offered    one-id    /b/one               sha256:abc
hello   1.1.0    offered    hello-id  dh/org/hello:latest  sha256:abc
hello   1.0.0    withdrawn  hello-id  dh/org/hello:v1.0    sha256:abc
one     9.0.0    left-out   one-id    dh/org/one:latest    sha256:abc

dh/org/hello:v1.0: withdrawn at T1 (absent), kept until T2 at least

fault: dh/org/none:latest: no manifest; add one (it is not offered)
";
        assert_eq!(text(&answer), expected);
    }
}
