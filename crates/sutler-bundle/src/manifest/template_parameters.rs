//! Parameters that a playbook may evaluate as templates, and the refusal of all others.
//!
//! Ansible evaluates every text of `--extra-vars` that contains template syntax, and a template can run commands.
//! Texts for playbooks of a folder are therefore marked as literal (`ansible_vars.rs` of `sutler-bundle-service`);
//! keys of objects cannot be marked, so new ones with template syntax are refused.
//! The entry point of an image is unknown and may read the file itself, so new texts with template syntax are refused
//! there, unless the manifest states another entry point than playbooks. A manifest can allow templates by name
//! (`template_parameters`).

use super::fields::Fields;
use super::plan::PlanEntry;
use super::{Manifest, ManifestFindings};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Beginnings of expressions, statements and comments of a template, and of a heading that chooses other ones.
const OPENERS: [&str; 4] = ["{{", "{%", "{#", "#jinja2"];
/// Prefix of keys that change how Ansible reads an object.
const ANSIBLE_KEY: &str = "__ansible";

/// Whether Ansible evaluates a text.
#[must_use]
pub fn has_template_syntax(text: &str) -> bool {
    OPENERS.iter().any(|opener| text.contains(opener))
}

/// Whether a template or a condition could evaluate a text or a key, alone or joined with others: conditions evaluate the
/// result of their template once more, as an expression without braces. A call can run a command there, and a comparison can
/// reveal a secret bit by bit.
#[must_use]
pub fn may_be_evaluated(text: &str) -> bool {
    text.contains(['{', '(']) || compares(text) || has_template_syntax(text)
}

/// Whether a text contains an operator that compares, or a filter that prepares it.
fn compares(text: &str) -> bool {
    let is_sign = text.contains(['<', '>', '|', '[']) || text.contains("==") || text.contains("!=");
    is_sign || has_operator(text, "in") || has_operator(text, "is")
}

/// Whether a word stands between two operands: after a number, a space, a quote or a bracket, and before another word. One of
/// them may be in another text that a playbook joins with this one.
fn has_operator(text: &str, word: &str) -> bool {
    let is_in_word = |it: char| it.is_alphanumeric() || it == '_';
    let is_space = |it: char| it.is_whitespace() || it.is_control();
    text != word
        && text.match_indices(word).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            if before.is_empty() {
                // Unlike `in-house`: such texts are no halves of a comparison.
                return after.starts_with(|it| is_space(it) || "'\"[({".contains(it));
            }
            let joined = before.trim_end_matches(is_in_word).len();
            let ends_operand = match before[joined..].chars().next() {
                // A number may end where a word begins.
                Some(first) => first.is_numeric(),
                None => before.ends_with(|it| is_space(it) || "'\"])}".contains(it)),
            };
            ends_operand && !after.starts_with(is_in_word)
        })
}

/// Whether Ansible gives a key of an object a meaning of its own.
#[must_use]
pub fn is_ansible_key(key: &str) -> bool {
    key.starts_with(ANSIBLE_KEY)
}

/// Refuses parameters of a request that Ansible would evaluate.
///
/// # Errors
/// A clause for the caller that names the parameter, without its value.
pub fn refuse_templates(
    manifest: &Manifest,
    parameters: &Map<String, Value>,
) -> Result<(), String> {
    if !manifest.may_run_playbooks() {
        return Ok(());
    }
    for (name, value) in parameters {
        let shown: String = name.chars().take(64).collect();
        if any(value, &|_| false, &is_ansible_key) {
            return Err(format!(
                "the parameter {shown:?} must not have a key that begins with `{ANSIBLE_KEY}`: choose another key"
            ));
        }
        if manifest.template_parameters.contains(name) {
            continue;
        }
        // A key cannot be marked as literal.
        if any(value, &|_| false, &may_be_evaluated) {
            return Err(format!(
                "the parameter {shown:?} must not have a key that contains `{{`, `#jinja2`, `(`, `[`, `<`, `>`, `|`, `==`, `!=`, or `in` or `is` as a word: choose another key"
            ));
        }
        if manifest.image.is_some() && any(value, &has_template_syntax, &|_| false) {
            return Err(format!(
                "the parameter {shown:?} must not contain `{{{{`, `{{%`, `{{#` or `#jinja2`: this service would read them as a template"
            ));
        }
    }
    Ok(())
}

/// Whether a text or a key anywhere in a value fits.
fn any(value: &Value, text: &dyn Fn(&str) -> bool, key: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(it) => text(it),
        Value::Array(items) => items.iter().any(|it| any(it, text, key)),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, it)| key(name) || any(it, text, key)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Reads the names of parameters that may be templates; each must be a parameter of a plan.
pub(super) fn read(
    top: &Fields<'_>,
    plans: &[PlanEntry],
    findings: &mut ManifestFindings,
) -> BTreeSet<String> {
    const KEY: &str = "template_parameters";
    let names: BTreeSet<String> = top.texts(KEY, findings).into_iter().flatten().collect();
    let parameters = |plan: &PlanEntry| {
        let all = plan.parameters.iter().chain(&plan.bind_parameters);
        all.map(|it| it.name.clone()).collect::<Vec<String>>()
    };
    let known: BTreeSet<String> = plans.iter().flat_map(parameters).collect();
    if let (Some(name), Some(node)) = (names.difference(&known).next(), top.get(KEY)) {
        let reason = format!("names `{name}`, which is not a parameter of any plan");
        findings.fault(node.place, KEY, &reason);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{may_be_evaluated, refuse_templates};
    use crate::manifest::{MANIFEST_FILES, Manifest};
    use serde_json::{Map, Value, json};

    const PLANS: &str = "plans: [{name: p, description: P., parameters: [{name: a, type: string}, \
                         {name: b, type: object}]}]\n";

    fn manifest(more: &str) -> Manifest {
        let text = format!("name: x\ndescription: X.\n{more}\n{PLANS}");
        Manifest::load(text.as_bytes(), MANIFEST_FILES[0]).expect("a manifest")
    }

    fn refusal(more: &str, parameters: Value) -> Option<String> {
        let parameters: Map<String, Value> = serde_json::from_value(parameters).expect("an object");
        refuse_templates(&manifest(more), &parameters).err()
    }

    const IMAGE: &str = "image: registry.example.com/x:1\nentrypoint: playbooks";

    #[test]
    fn template_syntax_is_refused_anywhere_in_the_parameters_of_an_image_of_playbooks() {
        let own_delimiters = "#jinja2: variable_start_string:'[['\n[[ if ]]";
        for text in ["{{ x }}", "a{% if %}", "{# c #}", "}}{{", own_delimiters] {
            for value in [
                json!(text),
                json!([text]),
                json!({ "k": text }),
                json!({ text: 1 }),
            ] {
                let reason = refusal(IMAGE, json!({ "a": value })).expect(text);
                assert!(
                    reason.contains("\"a\"") && !reason.contains("if"),
                    "{reason}"
                );
            }
        }
        assert_eq!(
            refusal(IMAGE, json!({ "a": "{ } { { # jinja2", "b": 1 })),
            None
        );
    }

    #[test]
    fn a_manifest_allows_templates_by_name() {
        let allowed = format!("{IMAGE}\ntemplate_parameters: [a]");
        assert_eq!(refusal(&allowed, json!({ "a": "{{ x }}" })), None);
        assert!(refusal(&allowed, json!({ "b": { "k": "{{ x }}" } })).is_some());
    }

    #[test]
    fn folders_of_playbooks_and_other_entry_points_take_any_text() {
        for more in [
            "entrypoint: playbooks",
            "entrypoint: scripts",
            "image: registry.example.com/x:1\nentrypoint: scripts",
            "image: registry.example.com/x:1\nentrypoint: [./run]",
        ] {
            assert_eq!(refusal(more, json!({ "a": "{{ x }}" })), None, "{more}");
        }
    }

    #[test]
    fn an_image_that_states_no_entry_point_is_treated_as_one_of_playbooks() {
        let image = "image: registry.example.com/x:1";
        assert!(refusal(image, json!({ "a": "{{ x }}" })).is_some());
        assert!(refusal(image, json!({ "b": { "__ansible_unsafe": "x" } })).is_some());
        assert_eq!(refusal(image, json!({ "a": "{ x }" })), None);
        let allowed = format!("{image}\ntemplate_parameters: [a]");
        assert_eq!(refusal(&allowed, json!({ "a": "{{ x }}" })), None);
        // A folder runs what the form of its manifest says.
        assert_eq!(refusal("bindable: true", json!({ "a": "{{ x }}" })), None);
    }

    #[test]
    fn keys_with_template_syntax_are_refused_for_folders_too() {
        let keys = [
            "{{ x }}",
            "a{% if %}",
            "{# c #}",
            "#jinja2: x",
            "f(x)",
            "x < 'm'",
            "'m' in x",
            "{ x",
        ];
        for key in keys {
            for value in [json!({ key: 1 }), json!([{ "k": { key: "x" } }])] {
                let parameters = json!({ "b": value });
                let reason = refusal("entrypoint: playbooks", parameters.clone()).expect(key);
                assert!(
                    reason.contains("\"b\"") && reason.contains("key"),
                    "{reason}"
                );
                assert!(!reason.contains("if"), "{reason}");
                let allowed = "entrypoint: playbooks\ntemplate_parameters: [b]";
                assert_eq!(refusal(allowed, parameters.clone()), None);
                assert_eq!(refusal("entrypoint: scripts", parameters), None);
            }
        }
    }

    #[test]
    fn texts_that_compare_could_be_evaluated_and_plain_ones_not() {
        for text in [
            "x < 'm'",
            "x>y",
            "x == y",
            "x != y",
            "x|length",
            "'a'in x",
            "y in x",
            "x is\tsearch 'a'",
            "x.0in'abc'",
            "0xain y",
            "x\u{1c}in\u{1c}y",
            "y[x.0]",
            "x.\u{664}in'abc'",
            // Halves that a playbook joins.
            "x in",
            "x.0is",
            "in x",
            "is\tsearch",
            "in'abc'",
        ] {
            assert!(may_be_evaluated(text), "{text}");
        }
        for text in [
            "in",
            "is",
            "log-in",
            "x.y/z",
            "within is_a",
            "a=b",
            "main info",
            "in-house",
            "is_a",
        ] {
            assert!(!may_be_evaluated(text), "{text}");
        }
    }

    #[test]
    fn keys_that_ansible_reads_are_refused_for_playbooks() {
        for key in ["__ansible_unsafe", "__ansible_vault", "__ansible_type"] {
            let parameters = json!({ "b": { "deep": [{ key: "x" }] } });
            let reason = refusal("entrypoint: playbooks", parameters.clone()).expect(key);
            assert!(reason.contains("__ansible"), "{reason}");
            assert_eq!(refusal("entrypoint: scripts", parameters), None);
        }
    }

    #[test]
    fn only_parameters_of_a_plan_can_be_templates() {
        let text = format!("name: x\ndescription: X.\ntemplate_parameters: [c]\n{PLANS}");
        let error = Manifest::load(text.as_bytes(), MANIFEST_FILES[0]).expect_err("a fault");
        assert!(error.to_string().contains("names `c`"), "{error}");
    }
}
