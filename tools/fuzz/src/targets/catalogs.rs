//! Catalogs in JSON and YAML, the settings next to them, and parameter schemas.

use super::Verdict;
use crate::properties::{body, kind_of, refused, round_trip, same, sentence};
use serde_json::{Value, json};
use sutler_broker::{CatalogFile, CatalogFileError, ParameterSchemas, PlanSchemas};
use sutler_osb::{Catalog, PinnedPlan, from_json};

pub(super) const WORDS: &[&str] = &[
    "services",
    "name",
    "id",
    "description",
    "bindable",
    "plans",
    "tags",
    "requires",
    "syslog_drain",
    "route_forwarding",
    "volume_mount",
    "instances_retrievable",
    "bindings_retrievable",
    "allow_context_updates",
    "metadata",
    "dashboard_client",
    "secret",
    "redirect_uri",
    "plan_updateable",
    "free",
    "binding_rotatable",
    "maximum_polling_duration",
    "maintenance_info",
    "version",
    "1.2.3",
    "schemas",
    "service_instance",
    "service_binding",
    "create",
    "update",
    "parameters",
    "$schema",
    "$ref",
    "#/definitions/a",
    "definitions",
    "spring",
    "cloud",
    "openservicebroker",
    "catalog",
    "image-url-resource",
    "properties",
    "- ",
    ": ",
    "&a ",
    "*a",
    "<<: *a",
    "!!str ",
    "|",
    ">",
    "---",
    "yes",
    "off",
    "~",
    "0x1f",
    ".inf",
    "? ",
    "#",
];

pub(super) const SETTING_WORDS: &[&str] = &[
    "com",
    "equalities",
    "osbapi",
    "service-instances",
    "service-bindings",
    "force-delete-unknown",
    "operations",
    "cleanup-age",
    "cleanup-all",
    "cleanup-succeeded",
    "cleanup-failed",
    ".",
    ": ",
    "10d",
    "PT2H",
    "P10D",
    "500ms",
    "1ns",
    "\"0 0 0 * * *\"",
    "@daily",
    "true",
    "no",
    "-",
    "P1Y",
    "+",
    "99999999999d",
    "spring.profiles: x",
    "---",
];

pub(super) const SCHEMA_WORDS: &[&str] = &[
    "schema",
    "parameters",
    "$schema",
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2020-12/schema",
    "type",
    "object",
    "array",
    "string",
    "integer",
    "properties",
    "additionalProperties",
    "patternProperties",
    "required",
    "enum",
    "const",
    "items",
    "prefixItems",
    "contains",
    "minimum",
    "exclusiveMinimum",
    "multipleOf",
    "pattern",
    "^(a+)+$",
    "format",
    "email",
    "regex",
    "uuid",
    "$ref",
    "#",
    "#/definitions/a",
    "#/properties/a",
    "definitions",
    "$defs",
    "$anchor",
    "$id",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependencies",
    "dependentRequired",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "uniqueItems",
    "minLength",
    "maxProperties",
    "contentEncoding",
    "contentMediaType",
    "a",
    "hush",
];

pub(super) fn json(input: &[u8]) -> Verdict {
    body::<Catalog>(input)
}

pub(super) fn yaml(input: &[u8]) -> Verdict {
    parsed(&String::from_utf8_lossy(input), input)
}

pub(super) fn settings(input: &[u8]) -> Verdict {
    parsed(
        &format!("services: []\n---\n{}", String::from_utf8_lossy(input)),
        input,
    )
}

fn parsed(text: &str, input: &[u8]) -> Verdict {
    match CatalogFile::parse(text, None) {
        Ok(file) => {
            for warning in &file.warnings {
                refused(warning, input)?;
            }
            let set = kind_of(&format!("{:?}", file.settings));
            Ok(format!("{} {set}", round_trip(&file.catalog)?))
        }
        Err(error) => faulty(&error, input),
    }
}

/// A list of faults has a line for each; each line is a sentence.
fn faulty(error: &CatalogFileError, input: &[u8]) -> Verdict {
    match error {
        CatalogFileError::Faulty(faults) => {
            let mut kinds: Vec<String> = Vec::new();
            for fault in faults {
                same(&fault.path.is_empty(), &false, "a fault without a path")?;
                kinds.push(kind_of(&refused(&fault.to_string(), input)?));
            }
            same(&faults.is_empty(), &false, "no fault, but refused")?;
            kinds.sort();
            kinds.dedup();
            Ok(kinds.into_iter().take(2).collect())
        }
        // A duplicate key is named.
        CatalogFileError::Yaml { reason, .. } if reason.starts_with("duplicate") => {
            sentence(&error.to_string()).map(|()| "a key twice".to_owned())
        }
        CatalogFileError::Yaml { .. } | CatalogFileError::Unreadable { .. } => {
            refused(&error.to_string(), input)
        }
        CatalogFileError::In { fault, .. } => faulty(fault, input),
    }
}

/// The input is an object with a `schema` and the `parameters` to validate.
pub(super) fn schema(input: &[u8]) -> Verdict {
    let Ok(Value::Object(mut both)) = serde_json::from_slice::<Value>(input) else {
        return Ok("no pair".to_owned());
    };
    let (schema, parameters) = (both.remove("schema"), both.remove("parameters"));
    let plan = json!({
        "service_id": "s", "service_name": "s", "plan_id": "p", "plan_name": "p", "bindable": true,
        "plan_updateable": true, "binding_rotatable": false, "instances_retrievable": true,
        "bindings_retrievable": true, "allow_context_updates": true,
        "schemas": { "service_instance": { "create": { "parameters": schema } } },
    });
    // Deeper than a catalog may be: refused when the catalog is read.
    let Ok(plan) = from_json::<PinnedPlan>(plan.to_string().as_bytes()) else {
        return Ok("no plan".to_owned());
    };
    let schemas = plan.schemas.as_ref().map(|schemas| PlanSchemas {
        provision: schemas.provision(),
        update: schemas.update(),
        bind: schemas.bind(),
    });
    let schemas = schemas.unwrap_or_default();
    let compiled = match ParameterSchemas::compile(schemas) {
        Ok(compiled) => compiled,
        Err(fault) => {
            sentence(&fault.to_string())?;
            return Ok(kind_of(&fault.to_string()));
        }
    };
    let Some(Value::Object(parameters)) = parameters else {
        return Ok("no parameters".to_owned());
    };
    let verdict = compiled.check_provision(&parameters);
    same(
        &compiled.check_provision(&parameters),
        &verdict,
        "is judged in two ways",
    )?;
    match verdict {
        Ok(()) => Ok("fits".to_owned()),
        Err(text) => {
            // The schema is public, so its values may be repeated.
            sentence(&text)?;
            let schema = plan
                .schemas
                .map(|it| json!(it).to_string())
                .unwrap_or_default();
            if text.contains("hush") && !schema.contains("hush") {
                return refused(&text, input);
            }
            Ok(kind_of(&text))
        }
    }
}
