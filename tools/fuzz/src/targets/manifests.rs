//! Manifests of bundles, new and old. A manifest that loads can be offered, shown and filled in.

use super::Verdict;
use crate::properties::{kind_of, same, sentence};
use serde_json::Map;
use sutler_bundle::{
    Manifest, Offer, ValidationPoint, accepts, docs_page, offering, with_defaults,
};
use sutler_osb::Catalog;

pub(super) const WORDS: &[&str] = &[
    "version: 1.0",
    "name",
    "id",
    "bundle_version",
    "description",
    "bindable",
    "async",
    "required",
    "plans",
    "parameters",
    "bind_parameters",
    "updates_to",
    "type",
    "string",
    "enum",
    "int",
    "number",
    "boolean",
    "object",
    "array",
    "null",
    "items",
    "properties",
    "default",
    "updatable",
    "max_length",
    "maxlength",
    "minimum",
    "exclusive_maximum",
    "multiple_of",
    "pattern",
    "^(a+)+$",
    "dependencies",
    "key",
    "value",
    "examples",
    "update",
    "secrets",
    "limits",
    "memory",
    "512MiB",
    "deadline",
    "5m",
    "on_lost",
    "rerun",
    "actions",
    "provision",
    "entrypoint",
    "inline_vars",
    "dashboard_url",
    "https://x/{instance_id}",
    "{",
    "}",
    "1e308",
    "-0.0",
    "18446744073709551615",
    ": ",
    "- ",
    "&a ",
    "*a",
    "~",
];

pub(super) fn bundle(input: &[u8]) -> Verdict {
    check_manifest(input, "bundle.yml")
}

pub(super) fn apb(input: &[u8]) -> Verdict {
    check_manifest(input, "apb.yml")
}

fn check_manifest(input: &[u8], file: &str) -> Verdict {
    match Manifest::load(input, file) {
        Ok(manifest) => loaded(&manifest, file),
        Err(faults) => {
            same(&faults.faults.is_empty(), &false, "no fault, but refused")?;
            let mut kinds: Vec<String> = Vec::new();
            for fault in faults.faults.iter().chain(&faults.warnings) {
                sentence(&fault.in_file(file))?;
                kinds.push(kind_of(&fault.sentence()));
            }
            kinds.sort();
            kinds.dedup();
            Ok(kinds.into_iter().take(2).collect())
        }
    }
}

fn loaded(manifest: &Manifest, file: &str) -> Verdict {
    for warning in &manifest.warnings {
        sentence(&warning.in_file(file))?;
    }
    let offered = Catalog::load(vec![offering(manifest, &Offer::default())]);
    offered.map_err(|faults| format!("cannot be offered: {faults}"))?;
    for plan in &manifest.plans {
        for list in [&plan.parameters, &plan.bind_parameters] {
            let none = Map::new();
            let filled = with_defaults(list, &none);
            let before = accepts(list, &none, ValidationPoint::Create);
            let after = accepts(list, &filled, ValidationPoint::Create);
            if before.is_ok() && after.is_err() {
                return Err(format!("refuses its own defaults: {after:?}"));
            }
        }
    }
    same(&docs_page(manifest).is_empty(), &false, "an empty page")?;
    let parameters: usize = manifest.plans.iter().map(|it| it.parameters.len()).sum();
    Ok(format!(
        "{} plans, {parameters} parameters",
        manifest.plans.len()
    ))
}
