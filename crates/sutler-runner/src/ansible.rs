//! Ansible modules for playbooks written for Automation Broker, under their old names and arguments.
//!
//! They write into the result directory of a run instead of a cluster, so such a playbook runs unmodified. Each
//! version of the modules is written to disk once and is on the path of every run; roles of the bundle itself take
//! precedence.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Every file: path and content.
const FILES: [(&str, &str); 8] = [
    (
        "library/asb_dashboard_url.py",
        include_str!("ansible/library/asb_dashboard_url.py"),
    ),
    (
        "library/asb_encode_binding.py",
        include_str!("ansible/library/asb_encode_binding.py"),
    ),
    (
        "library/asb_last_operation.py",
        include_str!("ansible/library/asb_last_operation.py"),
    ),
    (
        "library/asb_set_state.py",
        include_str!("ansible/library/asb_set_state.py"),
    ),
    (
        "lookup_plugins/asb_state.py",
        include_str!("ansible/lookup_plugins/asb_state.py"),
    ),
    (
        "module_utils/sutler_results.py",
        include_str!("ansible/module_utils/sutler_results.py"),
    ),
    (
        "roles/ansibleplaybookbundle.asb-modules/tasks/main.yml",
        include_str!("ansible/roles/asb-modules.yml"),
    ),
    (
        "roles/ansible.kubernetes-modules/tasks/main.yml",
        include_str!("ansible/roles/kubernetes-modules.yml"),
    ),
];

/// Environment variable with a search path of Ansible, our folder for it, and Ansible's default path.
const PATHS: [(&str, &str, &str); 4] = [
    (
        "ANSIBLE_LIBRARY",
        "library",
        ":/usr/share/ansible/plugins/modules",
    ),
    (
        "ANSIBLE_LOOKUP_PLUGINS",
        "lookup_plugins",
        ":/usr/share/ansible/plugins/lookup",
    ),
    (
        "ANSIBLE_MODULE_UTILS",
        "module_utils",
        ":/usr/share/ansible/plugins/module_utils",
    ),
    (
        "ANSIBLE_ROLES_PATH",
        "roles",
        ":/opt/ansible/roles:/etc/ansible/roles",
    ),
];

/// Writes the modules into a working directory, unless they exist, and returns their path. All users may read them:
/// runs have users of their own.
///
/// # Errors
/// The directory cannot be written.
pub(crate) fn write_modules(work: &Path) -> io::Result<PathBuf> {
    let place = work.join(format!("ansible-{}", digest()));
    if place.is_dir() {
        return Ok(place);
    }
    let aside = tempfile::Builder::new()
        .prefix(".new-ansible-")
        .tempdir_in(work)?;
    fs::set_permissions(aside.path(), fs::Permissions::from_mode(0o755))?;
    for (name, text) in FILES {
        let path = aside.path().join(name);
        for folder in folders_of(name) {
            let folder = aside.path().join(folder);
            fs::create_dir_all(&folder)?;
            // Independent of the umask.
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
        }
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444))?;
    }
    match fs::rename(aside.path(), &place) {
        Ok(()) => {
            // Renamed: the temporary directory must not be removed on drop.
            let _ = aside.keep();
            Ok(place)
        }
        // Another process that uses the same directory was faster.
        Err(_) if place.is_dir() => Ok(place),
        Err(error) => Err(error),
    }
}

/// Parent folders of a file, from the top.
fn folders_of(name: &str) -> Vec<&Path> {
    let above = Path::new(name).ancestors().skip(1);
    let mut folders: Vec<&Path> = above.filter(|it| !it.as_os_str().is_empty()).collect();
    folders.reverse();
    folders
}

/// Environment variables for a run that sees the modules at this path.
pub(crate) fn environment(place: &Path) -> BTreeMap<String, String> {
    let paths = PATHS.iter().map(|(variable, folder, further)| {
        let ours = place.join(folder);
        (
            (*variable).to_owned(),
            format!("{}{further}", ours.display()),
        )
    });
    let plain = [
        ("ANSIBLE_LOCALHOST_WARNING", "false"),
        ("ANSIBLE_INVENTORY_UNPARSED_WARNING", "false"),
        ("ANSIBLE_NOCOLOR", "true"),
        // A condition that is only the name of a variable is never evaluated as an expression.
        ("ANSIBLE_CONDITIONAL_BARE_VARS", "false"),
        ("ANSIBLE_RETRY_FILES_ENABLED", "false"),
    ];
    let plain = plain.map(|(name, value)| (name.to_owned(), value.to_owned()));
    paths.chain(plain).collect()
}

/// Digest of this version of the modules.
fn digest() -> String {
    let mut digest = Sha256::new();
    for (name, text) in FILES {
        for part in [name, text] {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
    }
    let bytes = digest.finalize();
    bytes[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{FILES, PATHS, environment, write_modules};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn modules_are_written_once_and_all_users_may_read_them() {
        let work = tempfile::tempdir().expect("a folder");
        let place = write_modules(work.path()).expect("written");
        for (name, text) in FILES {
            let path = place.join(name);
            assert_eq!(std::fs::read_to_string(&path).expect(name), text);
            let mode = path.metadata().expect(name).permissions().mode();
            assert_eq!(mode & 0o777, 0o444, "{name}");
        }
        assert_eq!(write_modules(work.path()).expect("there"), place);
        assert_eq!(std::fs::read_dir(work.path()).expect("listed").count(), 1);
    }

    #[test]
    fn every_path_of_ansible_begins_with_a_folder_that_is_there() {
        let work = tempfile::tempdir().expect("a folder");
        let place = write_modules(work.path()).expect("written");
        let environment = environment(&place);
        for (variable, folder, _) in PATHS {
            let ours = place.join(folder);
            assert!(ours.is_dir());
            assert!(environment[variable].starts_with(&ours.display().to_string()));
        }
    }
}
