//! Properties of offerings and plans that restrictions can name: those of Service Catalog.
//!
//! `name` is the name that Service Catalog gave the object in Kubernetes, which it made from the id: the id itself, or
//! its escaped form. The grammar is in `restriction_parser.rs`.

use super::offered_item::{OfferedPlan, OfferedService};
use std::fmt::Write as _;

/// Longest name of an object that was made by escaping alone, in characters.
const OBJECT_NAME_CHARS_MAX: usize = 63;

/// A property of an offering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClassProperty {
    /// `name`: its id, or the name that Service Catalog made from it.
    Name,
    /// `spec.externalName`: its name in the catalog.
    ExternalName,
    /// `spec.externalID`: its id.
    ExternalId,
}

/// A property of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanProperty {
    /// `name`: its id, or the name that Service Catalog made from it.
    Name,
    /// `spec.externalName`: its name in the catalog.
    ExternalName,
    /// `spec.externalID`: its id.
    ExternalId,
    /// `spec.free`: `true` or `false`.
    Free,
    /// `spec.serviceClass.name` or `spec.clusterServiceClass.name`: the `name` of its offering. Both spellings mean
    /// the same for every broker.
    ClassName,
}

/// What the parser needs to know of a property.
pub(super) trait RestrictionProperty: Copy + 'static {
    /// All spellings; the first one of each property is the one that is printed.
    const SPELLINGS: &'static [(&'static str, Self)];

    /// The spelling that is printed.
    fn name(self) -> &'static str;

    /// The values that are possible, if not every text is.
    fn possible_values(self) -> Option<[&'static str; 2]>;
}

impl RestrictionProperty for ClassProperty {
    const SPELLINGS: &'static [(&'static str, Self)] = &[
        ("name", Self::Name),
        ("spec.externalName", Self::ExternalName),
        ("spec.externalID", Self::ExternalId),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::ExternalName => "spec.externalName",
            Self::ExternalId => "spec.externalID",
        }
    }

    fn possible_values(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Name | Self::ExternalName | Self::ExternalId => None,
        }
    }
}

impl RestrictionProperty for PlanProperty {
    const SPELLINGS: &'static [(&'static str, Self)] = &[
        ("name", Self::Name),
        ("spec.externalName", Self::ExternalName),
        ("spec.externalID", Self::ExternalId),
        ("spec.free", Self::Free),
        ("spec.serviceClass.name", Self::ClassName),
        ("spec.clusterServiceClass.name", Self::ClassName),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::ExternalName => "spec.externalName",
            Self::ExternalId => "spec.externalID",
            Self::Free => "spec.free",
            Self::ClassName => "spec.serviceClass.name",
        }
    }

    fn possible_values(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Free => Some(["true", "false"]),
            Self::Name | Self::ExternalName | Self::ExternalId | Self::ClassName => None,
        }
    }
}

impl ClassProperty {
    /// The values of an offering. Several are spellings of one.
    pub(super) fn values(self, service: &OfferedService) -> Vec<String> {
        match self {
            Self::Name => object_names(service.id().as_str()),
            Self::ExternalName => vec![service.name().to_owned()],
            Self::ExternalId => vec![service.id().as_str().to_owned()],
        }
    }
}

impl PlanProperty {
    /// The values of a plan. Several are spellings of one.
    pub(super) fn values(self, plan: &OfferedPlan) -> Vec<String> {
        match self {
            Self::Name => object_names(plan.id().as_str()),
            Self::ExternalName => vec![plan.name().to_owned()],
            Self::ExternalId => vec![plan.id().as_str().to_owned()],
            // P-045: a plan is free unless it says otherwise.
            Self::Free => vec![plan.contents().plan.free.unwrap_or(true).to_string()],
            Self::ClassName => object_names(plan.service_id().as_str()),
        }
    }
}

/// An id, and the name of the object that Service Catalog made from it.
fn object_names(id: &str) -> Vec<String> {
    let mut names = vec![id.to_owned()];
    names.extend(escaped(id).filter(|name| name != id));
    names
}

/// An id as a name in Kubernetes: other characters than `a` to `y`, digits, and `.` and `-` where they are allowed,
/// become their code between two `z`. `None` if it is too long: Service Catalog shortened such a name with a digest.
fn escaped(id: &str) -> Option<String> {
    let last = id.len().saturating_sub(1);
    let mut name = String::new();
    let mut before = None;
    for (at, c) in id.char_indices() {
        let inside = at != 0 && at != last;
        let stays = match c {
            'a'..='y' | '0'..='9' => true,
            '.' => inside && !matches!(before, Some('.' | '-')),
            '-' => inside && before != Some('.'),
            _ => false,
        };
        if stays {
            name.push(c);
            before = Some(c);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(name, "z{:x}z", u32::from(c));
            before = None;
        }
    }
    (name.len() <= OBJECT_NAME_CHARS_MAX).then_some(name)
}
