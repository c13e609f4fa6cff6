//! Templates of new bundles that work as they are: shell, python and ansible.
//!
//! Returns files as values; `sutler bundle new` writes them. The templates are in `scaffold/`.

/// Language of a new bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    /// A shell script for each action.
    Shell,
    /// One program in Python.
    Python,
    /// A playbook for each action.
    Ansible,
}

/// A file of a new bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Its path below the bundle's folder.
    pub path: &'static str,
    /// Whether it must be executable.
    pub executable: bool,
    /// Its content.
    pub content: String,
}

/// Placeholder of the bundle's name in the templates.
const NAME: &str = "@NAME@";

/// A template file: path, whether it is executable, content with placeholders.
type TemplateFile = (&'static str, bool, &'static str);

const SHELL: [TemplateFile; 8] = [
    (
        "bundle.yml",
        false,
        include_str!("scaffold/shell/bundle.yml"),
    ),
    ("README.md", false, include_str!("scaffold/shell/README.md")),
    (
        "lib/bundle.sh",
        false,
        include_str!("scaffold/shell/lib/bundle.sh"),
    ),
    (
        "actions/provision",
        true,
        include_str!("scaffold/shell/actions/provision"),
    ),
    (
        "actions/update",
        true,
        include_str!("scaffold/shell/actions/update"),
    ),
    (
        "actions/bind",
        true,
        include_str!("scaffold/shell/actions/bind"),
    ),
    (
        "actions/unbind",
        true,
        include_str!("scaffold/shell/actions/unbind"),
    ),
    (
        "actions/deprovision",
        true,
        include_str!("scaffold/shell/actions/deprovision"),
    ),
];

const PYTHON: [TemplateFile; 3] = [
    (
        "bundle.yml",
        false,
        include_str!("scaffold/python/bundle.yml"),
    ),
    (
        "README.md",
        false,
        include_str!("scaffold/python/README.md"),
    ),
    ("run", true, include_str!("scaffold/python/run")),
];

const ANSIBLE: [TemplateFile; 7] = [
    (
        "bundle.yml",
        false,
        include_str!("scaffold/ansible/bundle.yml"),
    ),
    (
        "README.md",
        false,
        include_str!("scaffold/ansible/README.md"),
    ),
    (
        "playbooks/provision.yml",
        false,
        include_str!("scaffold/ansible/playbooks/provision.yml"),
    ),
    (
        "playbooks/update.yml",
        false,
        include_str!("scaffold/ansible/playbooks/update.yml"),
    ),
    (
        "playbooks/bind.yml",
        false,
        include_str!("scaffold/ansible/playbooks/bind.yml"),
    ),
    (
        "playbooks/unbind.yml",
        false,
        include_str!("scaffold/ansible/playbooks/unbind.yml"),
    ),
    (
        "playbooks/deprovision.yml",
        false,
        include_str!("scaffold/ansible/playbooks/deprovision.yml"),
    ),
];

/// The files of a new bundle.
///
/// # Errors
/// The name is not valid for a bundle; the sentence says which names are.
pub fn scaffold(name: &str, template: Template) -> Result<Vec<NewFile>, String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let whole = name.chars().all(fits) && name.starts_with(edge) && name.ends_with(edge);
    if name.len() > 50 || !whole {
        return Err(
            "a bundle's name has small letters, digits and `-`, at most 50 of them, and \
             begins and ends with a letter or a digit: choose one such as `my-database`"
                .to_owned(),
        );
    }
    let template_files: &[TemplateFile] = match template {
        Template::Shell => &SHELL,
        Template::Python => &PYTHON,
        Template::Ansible => &ANSIBLE,
    };
    let filled = |(path, executable, content): &TemplateFile| NewFile {
        path,
        executable: *executable,
        content: content.replace(NAME, name),
    };
    Ok(template_files.iter().map(filled).collect())
}

#[cfg(test)]
mod tests;
