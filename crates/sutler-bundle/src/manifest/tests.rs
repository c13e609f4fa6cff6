//! Manifests that load, and every way in which they do not.

use super::{Entry, Form, InlineVars, Kind, Manifest, OnLost};
use crate::action::Action;
use std::time::Duration;
use sutler_broker::Asynchrony;

fn load(text: &str) -> Manifest {
    let loaded = Manifest::load(text.as_bytes(), "bundle.yml");
    loaded.unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn the_smallest_manifest_has_a_name_a_description_and_a_plan() {
    let manifest = load(
        "{name: hello, description: Says hello., plans: [{name: free, description: The one.}]}",
    );
    assert_eq!(manifest.form, Form::Bundle);
    assert_eq!(manifest.entry, Entry::Scripts);
    assert_eq!(manifest.inline_vars, InlineVars::No);
    assert_eq!(manifest.image, None);
    assert!(!manifest.bindable && !manifest.share_provision_credentials);
    for action in Action::ALL {
        let rules = manifest.rules(action);
        assert!(rules.offered);
        assert_eq!(rules.asynchrony, Asynchrony::Preferred);
        assert_eq!(rules.on_lost, OnLost::Fail);
        assert_eq!(manifest.limits(action).deadline, Duration::from_secs(3600));
    }
    assert!(manifest.warnings.is_empty());
    let kinds = manifest.plans[0].parameters.iter().map(|it| &it.shape.kind);
    assert!(kinds.into_iter().all(|kind| !matches!(kind, Kind::Null)));
}
