//! Secrets that parameters of bindings come from.

use crate::test_platform::{TestPlatform, bound, name, namespace, person, wanted_binding};
use serde_json::json;
use std::collections::BTreeMap;
use sutler_platform::commands::{CommandError, WantedSecret};
use sutler_platform::spec::ParameterSource;

#[tokio::test(start_paused = true)]
async fn a_secret_that_a_binding_uses_is_deleted_only_after_the_binding() {
    let test = TestPlatform::start().await;
    test.live_instance("db", json!({})).await;
    let (namespace, secret, olga) = (namespace(), name("login"), person("olga"));
    let values = BTreeMap::from([("role".to_owned(), b"\"reader\"".to_vec())]);
    let platform = &test.platform;
    let values = WantedSecret(values);
    let written = platform.put_secret(&namespace, &secret, &values, &olga);
    written.await.expect("a secret");
    let mut wanted = wanted_binding("db", "app-db");
    wanted.parameter_sources.push(ParameterSource {
        secret: "login".to_owned(),
        key: None,
        watch: false,
    });
    bound(platform, &wanted).await;
    let refused = platform.delete_secret(&namespace, &secret).await;
    assert!(
        matches!(refused, Err(CommandError::SecretInUse(_))),
        "{refused:?}"
    );
    let binding = name("app-db");
    let abandoned = platform.abandon_binding(&namespace, &binding, &olga);
    abandoned.await.expect("it is abandoned");
    let deleted = platform.delete_secret(&namespace, &secret).await;
    deleted.expect("nothing uses it");
}
