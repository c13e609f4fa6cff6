//! Sample parameters for a plan: some that fit its schemas and some that do not.
//!
//! Parameters of the caller take precedence; otherwise they are derived from the untrusted schemas of the
//! catalog: `params/schema.rs` bounds the work of the validator, and every sample is checked before use.
//! Deriving: `params/valid_sample.rs`; breaking: `params/invalid_sample.rs`.

mod flatten;
mod invalid_sample;
mod limits;
mod pattern;
mod schema;
#[cfg(test)]
mod tests;
mod text;
mod valid_sample;

pub(crate) use schema::{external_references, fault as schema_fault};

use crate::catalog::{Offering, Plan};
use crate::options::{Options, PlanParameters};
use schema::Schema;
use serde_json::{Map, Value};

/// Parameters of one request.
pub(crate) type Parameters = Map<String, Value>;

/// Samples for the three requests of a plan that take parameters.
#[derive(Debug)]
pub(crate) struct Samples {
    pub provision: Sample,
    pub update: Sample,
    pub bind: Sample,
}

/// Parameters for one kind of request. Where something is missing, the reason
/// completes "not applicable: ".
#[derive(Debug)]
pub(crate) struct Sample {
    valid: Result<Option<Parameters>, String>,
    other: Result<Parameters, String>,
    invalid: Result<Vec<InvalidSample>, String>,
}

/// Parameters that break a schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InvalidSample {
    /// The fault: `without "size"`.
    pub what: String,
    pub parameters: Parameters,
}

impl Sample {
    /// Valid parameters; `None` if the request has no `parameters`.
    pub(crate) fn valid(&self) -> Result<Option<&Parameters>, &str> {
        match &self.valid {
            Ok(parameters) => Ok(parameters.as_ref()),
            Err(reason) => Err(reason),
        }
    }

    /// Other valid parameters.
    pub(crate) fn other(&self) -> Result<&Parameters, &str> {
        self.other.as_ref().map_err(String::as_str)
    }

    /// Invalid parameters; at least one.
    pub(crate) fn invalid(&self) -> Result<&[InvalidSample], &str> {
        match &self.invalid {
            Ok(all) => Ok(all),
            Err(reason) => Err(reason),
        }
    }

    fn of(schema: Option<&Value>, given: Option<&Parameters>, word: &str) -> Self {
        let none = |reason: String| Self {
            valid: Ok(given.cloned()),
            other: Err(reason.clone()),
            invalid: Err(reason),
        };
        let Some(schema) = schema else {
            return none(format!("the plan has no schema for parameters of {word}"));
        };
        let schema = match Schema::compile(schema) {
            Ok(schema) => schema,
            Err(why) => {
                let reason = format!("no parameters can be derived: the schema {why}");
                let mut sample = none(reason.clone());
                if given.is_none() {
                    sample.valid = Err(reason);
                }
                return sample;
            }
        };
        let found = valid_sample::parameters(&schema);
        let valid = given.or(found.first()).cloned();
        let other = found.iter().find(|it| Some(*it) != valid.as_ref());
        let invalid = invalid_sample::parameters(&schema, valid.as_ref());
        Self {
            other: other
                .cloned()
                .ok_or_else(|| "the schema was not found to allow any others".to_owned()),
            invalid: if invalid.is_empty() {
                Err("no parameters were found that the schema forbids".to_owned())
            } else {
                Ok(invalid)
            },
            valid: match valid {
                Some(valid) => Ok(Some(valid)),
                None => Err("no parameters were found that fit the schema".to_owned()),
            },
        }
    }
}

/// The samples of a plan.
pub(crate) fn samples(options: &Options, offering: &Offering, plan: &Plan) -> Samples {
    let given = given(options, offering, plan);
    let schemas = &plan.raw["schemas"];
    let schema = |kind: &str, verb: &str| schemas.get(kind)?.get(verb)?.get("parameters");
    Samples {
        provision: Sample::of(
            schema("service_instance", "create"),
            given.and_then(|it| it.provision.as_ref()),
            "a provision",
        ),
        update: Sample::of(
            schema("service_instance", "update"),
            given.and_then(|it| it.update.as_ref()),
            "an update",
        ),
        bind: Sample::of(
            schema("service_binding", "create"),
            given.and_then(|it| it.bind.as_ref()),
            "a bind",
        ),
    }
}

/// Parameters of the caller for a plan: by `service/plan` first, then by `service`.
pub(crate) fn given<'a>(
    options: &'a Options,
    offering: &Offering,
    plan: &Plan,
) -> Option<&'a PlanParameters> {
    let services = [&*offering.name, &*offering.id];
    let plans = [&*plan.name, &*plan.id];
    let exact = services
        .iter()
        .flat_map(|service| plans.iter().map(move |plan| format!("{service}/{plan}")));
    exact
        .chain(services.iter().map(|it| (*it).to_owned()))
        .find_map(|key| options.parameters.get(&key))
}
