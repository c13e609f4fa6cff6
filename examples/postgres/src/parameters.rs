//! Parameters of users and limits of plans. Pure.
//!
//! Parameters are typed: their JSON Schema is derived, published in the catalog and enforced before a
//! hook is called. Rules that a schema cannot express (no more connections than the plan allows) are here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use sutler_broker::{CatalogFile, Error, Result};

/// The parameters of an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Connections at a time to the database; at most what the plan allows, which is the default.
    #[schemars(range(min = 1, max = 10_000))]
    pub connection_limit: Option<u16>,
    /// Extensions that the database has. An update names all of them: what is left out is removed.
    #[serde(default)]
    pub extensions: BTreeSet<Extension>,
}

/// Extensions that come with every PostgreSQL server and that it trusts: no code of the user's.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Extension {
    /// Text that is compared without regard to case.
    #[serde(rename = "citext")]
    Citext,
    /// Key-value pairs in a column.
    #[serde(rename = "hstore")]
    Hstore,
    /// Search by similarity.
    #[serde(rename = "pg_trgm")]
    PgTrgm,
    /// Cryptographic functions.
    #[serde(rename = "pgcrypto")]
    Pgcrypto,
    /// Text without accents.
    #[serde(rename = "unaccent")]
    Unaccent,
}

impl Extension {
    /// Its name on the server. The only way from a parameter to SQL: a constant.
    pub fn name(self) -> &'static str {
        match self {
            Self::Citext => "citext",
            Self::Hstore => "hstore",
            Self::PgTrgm => "pg_trgm",
            Self::Pgcrypto => "pgcrypto",
            Self::Unaccent => "unaccent",
        }
    }
}

/// Limits of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Connections at a time to the database.
    pub connections: u16,
    /// Default statement timeout; a session may change it.
    pub statement_timeout_seconds: u32,
}

/// Specification of a database: the parameters, within the limits of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseSpec {
    /// Limits of the plan.
    pub limits: Limits,
    /// Connections at a time to the database.
    pub connections: u16,
    /// Extensions of the database.
    pub extensions: BTreeSet<Extension>,
}

impl DatabaseSpec {
    /// Fits parameters into the limits of a plan.
    ///
    /// # Errors
    /// The user requests more than the plan allows.
    pub fn new(limits: Limits, parameters: &Parameters) -> Result<Self> {
        let connections = parameters.connection_limit.unwrap_or(limits.connections);
        if connections > limits.connections {
            return Err(Error::invalid(format!(
                "The plan allows {} connections, and `connection_limit` asks for {connections}: ask \
                 for less, or choose a larger plan.",
                limits.connections
            )));
        }
        Ok(Self {
            limits,
            connections,
            extensions: parameters.extensions.clone(),
        })
    }
}

/// The limits of every plan in the catalog, by the plan's id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanLimits(HashMap<String, Limits>);

impl PlanLimits {
    /// Reads the limits from the metadata of the plans.
    ///
    /// # Errors
    /// A plan has no limits.
    pub fn of(file: &CatalogFile) -> std::result::Result<Self, MissingLimitsError> {
        let mut limits = HashMap::new();
        for plan in file.catalog.plans() {
            let plan = plan.plan();
            let written = plan.metadata.as_ref().and_then(|it| it.get("limits"));
            let read = written.and_then(|it| serde_json::from_value(it.clone()).ok());
            let read = read.ok_or_else(|| MissingLimitsError(plan.name.to_string()))?;
            limits.insert(plan.id.as_str().to_owned(), read);
        }
        Ok(Self(limits))
    }

    /// The limits of a plan, while the catalog has it.
    pub fn get(&self, plan: &str) -> Option<Limits> {
        self.0.get(plan).copied()
    }
}

/// A plan whose limits cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingLimitsError(String);

impl fmt::Display for MissingLimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the plan {:?} of the catalog must say, under `metadata`, \
             limits: {{ connections: 5, statement_timeout_seconds: 10 }}",
            self.0
        )
    }
}

impl std::error::Error for MissingLimitsError {}

#[cfg(test)]
mod tests {
    use super::{DatabaseSpec, Extension, Limits, Parameters, PlanLimits};
    use sutler_broker::CatalogFile;

    const LIMITS: Limits = Limits {
        connections: 5,
        statement_timeout_seconds: 10,
    };

    fn catalog() -> String {
        include_str!("../catalog.yaml").to_owned()
    }

    fn asking_for(connection_limit: Option<u16>) -> Parameters {
        Parameters {
            connection_limit,
            ..Parameters::default()
        }
    }

    #[test]
    fn the_default_limit_is_that_of_the_plan_and_a_lower_one_is_used() {
        for (requested, given) in [(None, 5), (Some(5), 5), (Some(1), 1)] {
            let spec = DatabaseSpec::new(LIMITS, &asking_for(requested)).expect("it is allowed");
            assert_eq!(spec.connections, given);
        }
    }

    #[test]
    fn a_limit_above_that_of_the_plan_is_refused_with_the_allowed_value() {
        let refused = DatabaseSpec::new(LIMITS, &asking_for(Some(6))).expect_err("too many");
        assert!(format!("{refused:?}").contains("allows 5 connections"));
    }

    #[test]
    fn every_extension_is_called_on_the_server_as_in_the_parameters() {
        for extension in [
            Extension::Citext,
            Extension::Hstore,
            Extension::PgTrgm,
            Extension::Pgcrypto,
            Extension::Unaccent,
        ] {
            let word = serde_json::to_value(extension).expect("a word");
            assert_eq!(word, extension.name());
        }
    }

    #[test]
    fn the_limits_of_every_plan_are_in_its_metadata() {
        let file = CatalogFile::parse(&catalog(), None).expect("the catalog");
        let limits = PlanLimits::of(&file).expect("limits");
        assert_eq!(
            limits.get("2f0c1c52-9f55-4c43-8a80-6a3c8e0f5b02"),
            Some(LIMITS)
        );
        assert_eq!(limits.get("another"), None);
    }

    #[test]
    fn a_plan_without_limits_is_refused_by_name_with_a_hint() {
        let yaml = catalog().replacen("connections: 50", "connections: many", 1);
        let file = CatalogFile::parse(&yaml, None).expect("a catalog");
        let fault = PlanLimits::of(&file).expect_err("no number").to_string();
        assert!(
            fault.contains("\"large\"") && fault.contains("limits: {"),
            "{fault}"
        );
    }
}
