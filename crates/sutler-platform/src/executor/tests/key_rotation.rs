//! Keys are rotated while bindings have credentials.

use crate::credentials::delivered_credentials;
use crate::lifecycle::binding::Binding;
use crate::platform_records::PlatformRecords;
use crate::records::Record;
use crate::test_platform::{TestPlatform, TestSettings};
use std::sync::Arc;
use sutler_journal::KeyRing;
use sutler_journal::rekey::{RekeyProgress, rekey};
use sutler_records::StoreClock;
use tokio::sync::watch;

/// The old key is retired after a rekey: a process that has only the new one delivers the same credentials.
#[tokio::test(start_paused = true)]
async fn credentials_are_delivered_after_the_key_that_sealed_them_is_retired() {
    let line = |id| KeyRing::fresh_line(id).to_string();
    let ring = |lines: &str| Arc::new(KeyRing::parse(lines).expect("keys"));
    let (old, new) = (line("old"), line("new"));
    let settings = TestSettings {
        keys: ring(&old),
        ..TestSettings::default()
    };
    let platform = TestPlatform::with(settings).await;
    let (_, instance) = platform.live_instance().await;
    let key = platform.bound(&instance, "app-db").await;
    let delivered = platform.credentials(&key).await.expect("credentials");
    let store = platform.context.records.documents.store.clone();
    let clock = StoreClock::read(store.as_ref()).await.expect("it answers");
    let progress = watch::Sender::new(RekeyProgress::default());
    let report = rekey(&store, &ring(&format!("{new}{old}")), &progress).await;
    assert!(report.expect("a report").is_complete());
    let records = PlatformRecords::new(store, ring(&new), clock);
    let found = records.load::<Binding>(&key).await.expect("it opens");
    let Record::Present(binding) = found.state else {
        panic!("there is a binding");
    };
    assert_eq!(
        delivered_credentials(&binding).expect("credentials"),
        delivered
    );
}
