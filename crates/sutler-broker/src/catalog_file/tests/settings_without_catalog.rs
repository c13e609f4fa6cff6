//! Settings of a file that has no catalog.

use crate::{CatalogFileError, FileSettings};

#[test]
fn settings_are_read_from_a_file_without_a_catalog() {
    let yaml = "com.equalities.osbapi.service-instances.force-delete-unknown: true\n";
    let (settings, warnings) = FileSettings::parse(yaml).expect("it is fine");
    assert!(settings.instances.force_delete_unknown);
    assert!(!settings.bindings.force_delete_unknown);
    assert!(warnings.is_empty());
}

#[test]
fn faults_of_settings_are_reported_without_a_catalog() {
    let yaml = "com.equalities.osbapi.service-instances.operations.cleanup-age: soon\n";
    let Err(CatalogFileError::Faulty(faults)) = FileSettings::parse(yaml) else {
        panic!("it has a fault");
    };
    assert_eq!(faults.len(), 1);
}
