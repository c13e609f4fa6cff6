//! Marks texts as literal for Ansible, which evaluates templates in `--extra-vars`. Pure, except for
//! a warning about keys that are left out.
//!
//! Ansible's JSON reader takes `{"__ansible_unsafe": TEXT}` as a text that is never evaluated, nor what is made of
//! it. All texts are marked, whether they come from users, the platform, earlier runs or the operator; for an image new
//! parameters with template syntax are refused before (`template_parameters.rs` of `sutler-bundle`). For an image that
//! states no entry point, which probably runs scripts, only those are marked that a template or a condition could
//! evaluate. Other entry points get plain texts.

use super::vars::USER_VARIABLE;
use serde_json::{Map, Value};
use sutler_bundle::{Entrypoint, Manifest, has_template_syntax, is_ansible_key, may_be_evaluated};
use sutler_runner::Vars;

/// Key of an object that Ansible reads as a literal text.
const LITERAL: &str = "__ansible_unsafe";

/// Variables as the entry point of a bundle needs them.
pub(super) fn mark_literals(manifest: &Manifest, vars: Vars) -> Vars {
    if !manifest.may_run_playbooks() {
        return vars;
    }
    let marks: fn(&str) -> bool = match (&manifest.image, &manifest.entry) {
        (None, _) | (Some(_), Entrypoint::Playbooks) => |_| true,
        (Some(_), Entrypoint::Scripts | Entrypoint::Program(_)) => may_be_evaluated,
    };
    let mut marked = Map::new();
    for (name, value) in vars.0 {
        if manifest.template_parameters.contains(&name) {
            marked.insert(name, value);
            continue;
        }
        if !is_plain_key(&name) || !has_plain_keys(&value) {
            let (bundle, variable) = (&manifest.name, name.chars().take(64).collect::<String>());
            tracing::warn!(%bundle, ?variable, "keys that Ansible would evaluate were left out of the variables of a run");
        }
        if is_plain_key(&name) {
            let value = match manifest.image.is_some() && is_user_template(&name, &value) {
                true => Value::String(String::new()),
                false => literal(value, marks),
            };
            marked.insert(name, value);
        }
    }
    Vars(marked)
}

/// Whether a variable is a name of a user that is a template. Creates and changes by such a user are refused for an
/// image; removals do without the name.
fn is_user_template(name: &str, value: &Value) -> bool {
    name == USER_VARIABLE && value.as_str().is_some_and(has_template_syntax)
}

/// Whether Ansible reads a key as it is. A key cannot be marked.
fn is_plain_key(key: &str) -> bool {
    !is_ansible_key(key) && !may_be_evaluated(key)
}

fn has_plain_keys(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(has_plain_keys),
        Value::Object(fields) => fields
            .iter()
            .all(|(key, it)| is_plain_key(key) && has_plain_keys(it)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Marks the texts in a value, and leaves out keys that Ansible would evaluate or give a meaning. A removal must be
/// possible whatever is stored, so they are not an error.
fn literal(value: Value, marks: fn(&str) -> bool) -> Value {
    match value {
        Value::String(text) if marks(&text) => {
            Value::Object(Map::from_iter([(LITERAL.to_owned(), Value::String(text))]))
        }
        Value::Array(items) => items.into_iter().map(|it| literal(it, marks)).collect(),
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(key, _)| is_plain_key(key));
            kept.map(|(key, it)| (key, literal(it, marks))).collect()
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::mark_literals;
    use serde_json::{Value, json};
    use sutler_bundle::Manifest;
    use sutler_runner::Vars;

    fn marked(more: &str, vars: Value) -> Value {
        let text = format!(
            "name: x\ndescription: X.\n{more}\nplans: [{{name: p, description: P., \
             parameters: [{{name: greeting, type: string}}]}}]"
        );
        let manifest = Manifest::load(text.as_bytes(), "bundle.yml").expect("a manifest");
        let vars = serde_json::from_value(vars).expect("an object");
        Value::Object(mark_literals(&manifest, Vars(vars)).0)
    }

    fn vars() -> Value {
        json!({
            "greeting": "{{ x }}", "size": 2, "plain": "a",
            "_apb_provision_creds": { "list": ["{% y %}", null], "__ansible_vault": "z" },
        })
    }

    #[test]
    fn every_text_for_a_playbook_is_literal() {
        let expected = json!({
            "greeting": { "__ansible_unsafe": "{{ x }}" }, "size": 2, "plain": { "__ansible_unsafe": "a" },
            "_apb_provision_creds": { "list": [{ "__ansible_unsafe": "{% y %}" }, null] },
        });
        assert_eq!(marked("entrypoint: playbooks", vars()), expected);
    }

    #[test]
    fn every_text_is_literal_for_an_image_of_playbooks() {
        let image = "image: registry.example.com/x:1\nentrypoint: playbooks";
        let expected = json!({
            "greeting": { "__ansible_unsafe": "{{ x }}" }, "size": 2, "plain": { "__ansible_unsafe": "a" },
            "_apb_provision_creds": { "list": [{ "__ansible_unsafe": "{% y %}" }, null] },
        });
        assert_eq!(marked(image, vars()), expected);
    }

    #[test]
    fn texts_that_choose_their_own_delimiters_are_literal_for_an_image_of_playbooks() {
        let image = "image: registry.example.com/x:1\nentrypoint: playbooks";
        for text in [
            "#jinja2: variable_start_string:'[[', variable_end_string:']]'\n[[ x ]]",
            " \n#jinja2:trim_blocks:False",
        ] {
            let expected = json!({ "plain": { "__ansible_unsafe": text } });
            assert_eq!(marked(image, json!({ "plain": text })), expected);
        }
    }

    #[test]
    fn keys_with_template_syntax_are_left_out_for_playbooks() {
        let inner = json!({ "{{ x }}": 1, "#jinja2: x": 1, "lookup('x')": 1, "deep": [{ "{% y %}": 1, "{": 2, "}": 3 }] });
        let vars = json!({ "state_{{ x }}": 1, "greeting": inner, "state_a": inner });
        let kept = json!({ "deep": [{ "}": 3 }] });
        for more in [
            "entrypoint: playbooks",
            "image: registry.example.com/x:1\nentrypoint: playbooks",
        ] {
            let expected = json!({ "greeting": kept, "state_a": kept });
            assert_eq!(marked(more, vars.clone()), expected, "{more}");
        }
        let allowed = "entrypoint: playbooks\ntemplate_parameters: [greeting]";
        let expected = json!({ "greeting": inner, "state_a": kept });
        assert_eq!(marked(allowed, vars.clone()), expected);
        assert_eq!(marked("entrypoint: scripts", vars.clone()), vars);
    }

    #[test]
    fn a_parameter_that_may_be_a_template_and_other_entry_points_get_plain_texts() {
        let allowed = "entrypoint: playbooks\ntemplate_parameters: [greeting]";
        assert_eq!(marked(allowed, vars())["greeting"], "{{ x }}");
        for plain in ["entrypoint: scripts", "entrypoint: [./run]"] {
            assert_eq!(marked(plain, vars()), vars());
            let image = format!("image: registry.example.com/x:1\n{plain}");
            assert_eq!(marked(&image, vars()), vars());
        }
    }

    #[test]
    fn texts_that_could_be_evaluated_are_literal_for_an_image_that_states_no_entry_point() {
        let image = "image: registry.example.com/x:1";
        let given =
            json!({ "user": "{{ x }}", "half": "a{b", "call": "f(1)", "plain": "a b", "size": 2 });
        let expected = json!({
            "user": { "__ansible_unsafe": "{{ x }}" }, "half": { "__ansible_unsafe": "a{b" },
            "call": { "__ansible_unsafe": "f(1)" }, "plain": "a b", "size": 2,
        });
        assert_eq!(marked(image, given), expected);
    }
}
