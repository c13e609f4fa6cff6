//! The two compatibility switches of `sutler broker`, verified by the check in both profiles.

use super::{CONFIG, catalog, checked};
use crate::process::{Broker, folder};

const SWITCHES: [&str; 2] = ["--compat-missing-version", "--compat-deleted-gone"];

#[test]
fn each_profile_passes_with_its_switches() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("catalog.yaml"), catalog(1)).expect("a file");
    std::fs::write(folder.join("sutler.yaml"), CONFIG).expect("a file");
    let config = ["broker", "--config", "sutler.yaml", "--in-memory"];
    let now = Broker::start(folder, &config);
    let compat = Broker::start(folder, &[config.as_slice(), &SWITCHES].concat());
    for (broker, profile, code) in [
        (&now, "2.17", 0),
        (&now, "compat-2.13", 1),
        (&compat, "compat-2.13", 0),
        (&compat, "2.17", 1),
    ] {
        let output = checked(folder, broker, &["--level", "should", "--profile", profile]);
        assert_eq!(output.code, Some(code), "{profile}: {}", output.stdout);
        let differs = output.stdout.contains("version-missing-status");
        assert_eq!(differs, code == 1, "{profile}: {}", output.stdout);
    }
}
