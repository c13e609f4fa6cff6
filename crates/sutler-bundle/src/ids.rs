//! Ids of offerings and plans: chosen by the author, or derived from names.
//!
//! An id must not change while instances exist. The name of a registry is part of an id only in Automation Broker's
//! scheme, which its instances need.

use crate::manifest::{Manifest, PlanEntry};
use md5::{Digest, Md5};
use sha2::Sha256;
use uuid::Builder;

/// Longest full name of the old scheme, in characters: with the suffixes it had to fit into 63.
const FULL_NAME_CHARS_MAX: usize = 51;

/// Source of ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IdScheme {
    /// The id in the manifest; otherwise derived from the names of bundle and plan.
    #[default]
    Explicit,
    /// Automation Broker's ids: MD5 of the names of registry, bundle and plan. Ids in the manifest are ignored, as
    /// they were there.
    Md5 {
        /// The registry's name.
        registry: String,
    },
}

impl IdScheme {
    /// The offering's name.
    #[must_use]
    pub fn service_name(&self, manifest: &Manifest) -> String {
        match self {
            Self::Explicit => manifest.name.clone(),
            Self::Md5 { registry } => full_name(registry, &manifest.name),
        }
    }

    /// The offering's id.
    #[must_use]
    pub fn service_id(&self, manifest: &Manifest) -> String {
        match (self, &manifest.id) {
            (Self::Explicit, Some(id)) => id.clone(),
            (Self::Explicit, None) => derived(&["bundle", &manifest.name]),
            (Self::Md5 { registry }, _) => md5(&full_name(registry, &manifest.name)),
        }
    }

    /// A plan's id.
    #[must_use]
    pub fn plan_id(&self, manifest: &Manifest, plan: &PlanEntry) -> String {
        match (self, &plan.id) {
            (Self::Explicit, Some(id)) => id.clone(),
            (Self::Explicit, None) => derived(&["plan", &manifest.name, &plan.name]),
            (Self::Md5 { registry }, _) => {
                let name = full_name(registry, &manifest.name);
                md5(&format!("{name}-{}", plan.name))
            }
        }
    }
}

/// The full name of the old scheme.
fn full_name(registry: &str, name: &str) -> String {
    let plain = |c: char| if "/.:-".contains(c) { '-' } else { c };
    let full = format!("{registry}-{name}");
    let mut short: String = full.chars().map(plain).take(FULL_NAME_CHARS_MAX).collect();
    if short.ends_with('-') {
        short.pop();
    }
    short
}

fn md5(text: &str) -> String {
    let digest = Md5::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A UUID derived from names; each is hashed with its length, so that different lists differ.
fn derived(names: &[&str]) -> String {
    let mut hash = Sha256::new();
    hash.update(b"sutler");
    for name in names {
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name.as_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    Builder::from_custom_bytes(half).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use super::{IdScheme, derived, full_name, md5};
    use crate::manifest::Manifest;

    fn manifest(text: &str) -> Manifest {
        Manifest::load(text.as_bytes(), "bundle.yml").expect("a manifest")
    }

    #[test]
    fn the_old_scheme_makes_the_ids_that_its_instances_have() {
        for (name, id) in [
            ("dh-postgresql-apb", "1dda1477cace09730bd8ed7a6505607e"),
            ("dh-postgresql-apb-dev", "7f4a5e35e4af2beb70076e72fab0b7ff"),
            ("dh-mediawiki-apb", "f6c4486b7fb0cdac4b58e193607f7011"),
            ("dh-mssql-remote-apb", "2c79572fbf83125231198451c26e7cf9"),
            (
                "dh-mssql-remote-apb-default",
                "967abf12e1801de907b5c96f96f5b939",
            ),
        ] {
            assert_eq!(md5(name), id, "{name}");
        }
        let scheme = IdScheme::Md5 {
            registry: "dh".to_owned(),
        };
        let text = "{name: postgresql-apb, id: mine, description: d, plans: [{name: dev, id: own, description: d}]}";
        let manifest = manifest(text);
        assert_eq!(scheme.service_name(&manifest), "dh-postgresql-apb");
        assert_eq!(scheme.service_id(&manifest), md5("dh-postgresql-apb"));
        let plan = scheme.plan_id(&manifest, &manifest.plans[0]);
        assert_eq!(plan, md5("dh-postgresql-apb-dev"));
    }

    #[test]
    fn full_names_are_cut_where_they_always_were() {
        assert_eq!(full_name("dh", "org/some.name:tag"), "dh-org-some-name-tag");
        let long = "x".repeat(60);
        assert_eq!(full_name("dh", &long).len(), 51);
        let dash_at_the_end = format!("{}--more", "x".repeat(46));
        assert_eq!(full_name("dh", &dash_at_the_end).len(), 50);
    }

    #[test]
    fn ids_are_those_chosen_or_made_from_names_alone() {
        let scheme = IdScheme::Explicit;
        let text = "{name: a, description: d, plans: [{name: p, description: d}, {name: q, id: chosen, description: d}]}";
        let manifest = manifest(text);
        assert_eq!(scheme.service_id(&manifest), derived(&["bundle", "a"]));
        // This id must never change: instances refer to it.
        let expected = "50270c68-7cac-8f8a-8ab4-b00857005a44";
        assert_eq!(scheme.service_id(&manifest), expected);
        assert_eq!(scheme.plan_id(&manifest, &manifest.plans[1]), "chosen");
        let plan = scheme.plan_id(&manifest, &manifest.plans[0]);
        assert_ne!(plan, derived(&["plan", "ap", ""]));
    }
}
