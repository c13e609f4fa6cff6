//! Marks texts as literal for Ansible, which evaluates templates in `--extra-vars`. Pure.
//!
//! Ansible's JSON reader takes `{"__ansible_unsafe": TEXT}` as a text that is never evaluated, nor what is made of
//! it. All texts are marked, whether they come from users, the platform, earlier runs or the operator. For an image
//! only those with a brace or `#jinja2` are: its entry point may read the file itself, and new parameters with template
//! syntax are refused before (`template_parameters.rs` of `sutler-bundle`). Other entry points get plain texts.

use serde_json::{Map, Value};
use sutler_bundle::{Entrypoint, Manifest, has_template_syntax, is_ansible_key};
use sutler_runner::Vars;

/// Key of an object that Ansible reads as a literal text.
const LITERAL: &str = "__ansible_unsafe";

/// Variables as the entry point of a bundle needs them.
pub(super) fn mark_literals(manifest: &Manifest, vars: Vars) -> Vars {
    if manifest.entry != Entrypoint::Playbooks {
        return vars;
    }
    let marks = match manifest.image {
        Some(_) => |text: &str| text.contains('{') || has_template_syntax(text),
        None => |_: &str| true,
    };
    let mark = |(name, value): (String, Value)| {
        let value = match manifest.template_parameters.contains(&name) {
            true => value,
            false => literal(value, marks),
        };
        (name, value)
    };
    Vars(vars.0.into_iter().map(mark).collect())
}

/// Marks the texts in a value, and leaves out keys that Ansible would give a meaning.
fn literal(value: Value, marks: fn(&str) -> bool) -> Value {
    match value {
        Value::String(text) if marks(&text) => {
            Value::Object(Map::from_iter([(LITERAL.to_owned(), Value::String(text))]))
        }
        Value::Array(items) => items.into_iter().map(|it| literal(it, marks)).collect(),
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(key, _)| !is_ansible_key(key));
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
    fn texts_with_a_brace_are_literal_for_an_image_of_playbooks() {
        let image = "image: registry.example.com/x:1\nentrypoint: playbooks";
        let expected = json!({
            "greeting": { "__ansible_unsafe": "{{ x }}" }, "size": 2, "plain": "a",
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
    fn a_parameter_that_may_be_a_template_and_other_entry_points_get_plain_texts() {
        let allowed = "entrypoint: playbooks\ntemplate_parameters: [greeting]";
        assert_eq!(marked(allowed, vars())["greeting"], "{{ x }}");
        for plain in ["entrypoint: scripts", "entrypoint: [./run]"] {
            assert_eq!(marked(plain, vars()), vars());
        }
    }
}
