//! Tests of merging and checking configurations; fixtures of its submodules.

mod faulty;
mod layers;
mod registries;
mod spring;

use super::{ConfigError, ConfigInput, FlagValue, MergedConfig, merge};

const NAME: &str = "sutler.yaml";

pub(super) fn of_file(text: &str) -> ConfigInput {
    ConfigInput {
        file: Some((NAME.to_owned(), text.to_owned())),
        ..ConfigInput::default()
    }
}

fn with_variables(text: &str, variables: &[(&str, &str)]) -> ConfigInput {
    let variables = variables.iter();
    ConfigInput {
        variables: variables
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..of_file(text)
    }
}

fn flag(name: &'static str, path: &'static str, value: &str) -> FlagValue {
    FlagValue {
        name,
        path,
        value: value.to_owned(),
    }
}

#[track_caller]
pub(super) fn good(input: &ConfigInput) -> MergedConfig {
    match merge(input) {
        Ok(draft) => draft,
        Err(faults) => panic!("{faults}"),
    }
}

fn faults(input: &ConfigInput) -> ConfigError {
    match merge(input) {
        Ok(_) => ConfigError(Vec::new()),
        Err(faults) => faults,
    }
}

/// Compares with a stored text; writes it when SUTLER_TEST_WRITE is set.
#[track_caller]
fn kept(name: &str, kept: &str, actual: &str) {
    if std::env::var_os("SUTLER_TEST_WRITE").is_some() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/config/tests");
        std::fs::write(format!("{folder}/{name}"), actual).expect("it is written");
        return;
    }
    assert_eq!(
        kept, actual,
        "{name}: if this is meant, set SUTLER_TEST_WRITE=1, run the test again and read the difference"
    );
}
