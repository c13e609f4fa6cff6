//! Parameters from a file, JSON or YAML; every fault has its place. Values are never printed.

use super::exit::CheckCommandError;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use sutler_check::PlanParameters;
use sutler_yaml::{Diagnostic, Location, YAML_BYTES_MAX, one_line, parse};

/// Parameters of one plan.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanParameterSections {
    provision: Option<Map<String, Value>>,
    update: Option<Map<String, Value>>,
    bind: Option<Map<String, Value>>,
}

/// Reads a file of parameters.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, PlanParameters>, CheckCommandError> {
    let length = std::fs::metadata(path).map(|it| it.len());
    let length = length.map_err(|error| CheckCommandError::file("read", path, error))?;
    if length > YAML_BYTES_MAX as u64 {
        let sentence = format!(
            "{} has {length} bytes, and {YAML_BYTES_MAX} are read at most; give only the plans that are checked",
            path.display()
        );
        return Err(CheckCommandError::Usage(sentence));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| CheckCommandError::file("read", path, error))?;
    parse_parameters(&text).map_err(|faults| {
        let faults: Vec<String> = faults
            .iter()
            .map(|it| format!("\n  {}:{it}", path.display()))
            .collect();
        CheckCommandError::Usage(format!(
            "the parameters cannot be read; correct the file:{}",
            faults.concat()
        ))
    })
}

/// Parses parameters, or returns every fault with its place.
fn parse_parameters(text: &str) -> Result<BTreeMap<String, PlanParameters>, Vec<String>> {
    let documents =
        parse(text).map_err(|fault| vec![format!("{} {}", at(fault.place), fault.reason)])?;
    let [root] = documents.as_slice() else {
        return Err(vec!["1:1: the file must hold one document".to_owned()]);
    };
    let read = sutler_yaml::read::<BTreeMap<String, PlanParameterSections>>(root);
    if !read.faults.is_empty() {
        let describe = |it: &Diagnostic| {
            let path = one_line(&it.path);
            format!("{} {path} {}", at(it.place), one_line(&it.reason))
        };
        return Err(read.faults.iter().map(describe).collect());
    }
    let all = read.value.unwrap_or_default().into_iter();
    Ok(all
        .map(|(key, given)| {
            let parameters = PlanParameters {
                provision: given.provision,
                update: given.update,
                bind: given.bind,
            };
            (key, parameters)
        })
        .collect())
}

/// Line and column, in the format of compilers.
fn at(place: Option<Location>) -> String {
    match place {
        Some(Location { line, column }) => format!("{line}:{column}:"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_parameters;

    #[test]
    fn yaml_and_json_are_equivalent() {
        let yaml = "data/small:\n  provision: {size: 3, name: x}\n  bind: {}\n";
        let json = r#"{"data/small": {"provision": {"size": 3, "name": "x"}, "bind": {}}}"#;
        let read = |text: &str| {
            let mut all = parse_parameters(text).expect("it is right");
            let one = all.remove("data/small").expect("it is there");
            (one.provision, one.update, one.bind)
        };
        assert_eq!(read(yaml), read(json));
        let parameters = parse_parameters(yaml)
            .expect("it is right")
            .remove("data/small");
        let provision = parameters.and_then(|it| it.provision).expect("it is there");
        assert_eq!(provision["size"], 3);
    }

    #[test]
    fn every_fault_is_printed_with_its_location_and_without_its_value() {
        let text = "data/small:\n  provison: {size: hush}\ndata/large:\n  bind: hush\n";
        let faults = parse_parameters(text).expect_err("it is faulty").join("\n");
        assert!(faults.contains("2:3: "), "{faults}");
        assert!(faults.contains("provision"), "{faults}");
        assert!(faults.contains("4:9: "), "{faults}");
        assert!(!faults.contains("hush"), "{faults}");
    }
}
