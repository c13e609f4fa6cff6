//! Flaws of the catalog: one value of it is replaced. Values that a flaw replaces are in the
//! catalogs of the test broker.

use super::Flaws;
use serde_json::{Value, json};

/// A flaw, the path that it changes below the first offering, and the new value.
const FLAWS: &str = r##"
offering-name /name ""
catalog-names /name "two words"
catalog-ids-guid /plans/0/id "not-a-guid"
catalog-ids-unreserved /plans/0/id "a/b"
offering-id /id 7
offering-description /description ""
offering-bindable /bindable "true"
offering-plans /plans []
offering-tags /tags "kit"
offering-requires /requires ["everything"]
offering-instances-retrievable /instances_retrievable "true"
offering-bindings-retrievable /bindings_retrievable "true"
offering-allow-context-updates /allow_context_updates "true"
offering-metadata /metadata "kit"
offering-dashboard-client /dashboard_client/secret ""
offering-plan-updateable /plan_updateable "true"
plan-id /plans/0/id ""
plan-name /plans/0/name ""
plan-description /plans/0/description ""
plan-metadata /plans/0/metadata "kit"
plan-metadata-profile /plans/0/metadata/bullets "one"
plan-free /plans/0/free "true"
plan-bindable /plans/0/bindable "true"
plan-binding-rotatable /plans/0/binding_rotatable "true"
plan-plan-updateable /plans/0/plan_updateable "true"
plan-maximum-polling-duration /plans/0/maximum_polling_duration "60"
plan-maintenance-info /plans/0/maintenance_info/version "1.2"
plan-schemas /plans/0/schemas/service_instance []
schema-dialect SCHEMA {"type":"object"}
schema-references SCHEMA {"$schema":"http://json-schema.org/draft-07/schema#","$ref":"https://elsewhere.example/schema"}
schema-valid SCHEMA {"$schema":"http://json-schema.org/draft-07/schema#","type":7}
"##;

/// The first of the schemas.
const SCHEMA: &str = "/plans/0/schemas/service_instance/create/parameters";

/// Breaks the catalog; `requests` is the number of requests so far.
pub(crate) fn alter_catalog(flaws_on: &Flaws, requests: usize, catalog: &mut Value) {
    if flaws_on.has("catalog") {
        catalog["services"] = catalog["services"][0].clone();
        return;
    }
    let first = &mut catalog["services"][0];
    for row in FLAWS.trim().lines() {
        let parts: Vec<&str> = row.splitn(3, ' ').collect();
        if let Some(place) = first.pointer_mut(&parts[1].replace("SCHEMA", SCHEMA))
            && flaws_on.has(parts[0])
        {
            *place = serde_json::from_str(parts[2]).unwrap();
        }
    }
    if let Some(schema) = first.pointer_mut(SCHEMA)
        && flaws_on.has("schema-size")
    {
        schema["title"] = json!("a".repeat(70_000));
    }
    if flaws_on.has("catalog-lengths") {
        first["description"] = json!("a".repeat(256));
    }
    if requests > 1 && flaws_on.has("catalog-stable-ids") {
        first["plans"][0]["id"] = json!("0c9f8a52-5d4e-4b7c-9a61-999999999999");
    }
    if first["plans"][1].is_object() {
        if flaws_on.has("plan-id-unique") {
            first["plans"][1]["id"] = first["plans"][0]["id"].clone();
        }
        if flaws_on.has("plan-name-unique") {
            first["plans"][1]["name"] = first["plans"][0]["name"].clone();
        }
    }
    twin(flaws_on, catalog);
}

/// A copy of the first offering, with another name or another id.
fn twin(flaws_on: &Flaws, catalog: &mut Value) {
    for (flaw, own, value) in [
        (
            "offering-name-unique",
            "id",
            json!("0c9f8a52-5d4e-4b7c-9a61-888888888888"),
        ),
        ("offering-id-unique", "name", json!("twin")),
    ] {
        if !flaws_on.has(flaw) {
            continue;
        }
        let mut twin = catalog["services"][0].clone();
        twin[own] = value;
        twin["plans"] = json!([{
            "id": "0c9f8a52-5d4e-4b7c-9a61-777777777777", "name": "twin", "description": "A twin",
        }]);
        if let Some(services) = catalog["services"].as_array_mut() {
            services.push(twin);
        }
    }
}
