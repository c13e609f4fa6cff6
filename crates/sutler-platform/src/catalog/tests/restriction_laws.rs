//! Laws of the grammar of restrictions: no text makes the parser panic, and what it prints it reads again.

use super::restrictions::texts;
use crate::catalog::{CatalogRestrictions, RestrictionTexts};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

/// A requirement with any values.
fn requirement() -> impl Strategy<Value = String> {
    let quoted = |value: &String| {
        let escaped = value.replace('\\', r"\\").replace('"', r#"\""#);
        format!("\"{escaped}\"")
    };
    let values = vec(".{1,8}", 1..4).prop_map(move |values| {
        let quoted: Vec<String> = values.iter().map(quoted).collect();
        quoted.join(" , ")
    });
    let property = prop_oneof!["name", "spec\\.externalName", "spec\\.externalID"];
    (property, prop_oneof!["in", "notin"], values)
        .prop_map(|(property, operator, values)| format!("{property} {operator} ({values})"))
}

proptest! {
    #[test]
    fn the_parser_never_panics(text in ".{0,80}", other in "[ \\\\\"=!(),a-zN.]{0,60}") {
        for text in [text, other] {
            let read = CatalogRestrictions::parse(&texts(&[&text], &[&text]));
            if let Err(error) = read {
                prop_assert!(error.column <= text.chars().count() + 1);
                prop_assert!(error.to_string().len() < 500);
            }
        }
    }

    #[test]
    fn the_beginnings_of_a_valid_text_never_panic(text in requirement(), at in any::<proptest::sample::Index>()) {
        let cut: String = text.chars().take(at.index(text.len() + 1)).collect();
        let _ = CatalogRestrictions::parse(&texts(&[&cut], &[&cut]));
    }

    #[test]
    fn restrictions_survive_a_round_trip(classes in vec(requirement(), 0..4), plans in vec(requirement(), 0..4)) {
        let texts = RestrictionTexts { service_class: classes, service_plan: plans };
        let restrictions = CatalogRestrictions::parse(&texts).unwrap();
        let printed = RestrictionTexts::from(restrictions.clone());
        prop_assert_eq!(CatalogRestrictions::parse(&printed).unwrap(), restrictions);
    }
}
