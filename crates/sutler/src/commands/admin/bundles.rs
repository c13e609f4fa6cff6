//! `sutler admin bundles`: what is offered in which version, and why something is not.

use super::Output;
use super::client::Client;
use super::failure::Failure;
use super::list::{print, shown};
use super::table::{self, Listed};
use serde_json::Value;

const BUNDLES: Listed = Listed {
    path: "bundles",
    columns: &[
        ("BUNDLE", "name"),
        ("VERSION", "version"),
        ("SERVICE", "service_id"),
        ("FOLDER", "folder"),
        ("DIGEST", "digest"),
    ],
    names: &["name"],
};

pub(super) async fn run(client: &Client, output: Output) -> Result<(), Failure> {
    let answer = client.get(BUNDLES.path, &[]).await?;
    match output {
        Output::Json => shown(output, &answer),
        Output::Name => print(&table::names(&BUNDLES, items(&answer))),
        Output::Table => print(&text(&answer)),
    }
}

/// A table, and below it every fault in full: a line that is cut off helps nobody.
fn text(answer: &Value) -> String {
    let table = table::rows(&BUNDLES, items(answer));
    let faults = answer["faults"].as_array().into_iter().flatten();
    let faults = faults.filter_map(Value::as_str);
    faults.fold(table, |text, fault| format!("{text}\nfault: {fault}\n"))
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
                "name": "one", "version": null, "service_id": "one-id", "folder": "/b/one",
                "digest": "sha256:abc",
            }],
            "faults": [fault],
        });
        let expected = format!(
            "BUNDLE  VERSION  SERVICE  FOLDER  DIGEST\none     -        one-id   /b/one  sha256:abc\n\nfault: {fault}\n"
        );
        assert_eq!(text(&answer), expected);
    }
}
