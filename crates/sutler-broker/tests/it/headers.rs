//! Version header, identity headers, unknown fields.

use crate::kit::on_each_store;

/// Holds: B-081.
#[tokio::test]
async fn smoke() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.has_binding("i", "b").await;
        kit.fetch("i").send().await.is(200);
        let done = kit
            .finish("i", kit.deprovision("i").accepts_incomplete())
            .await;
        assert_eq!(done.json["state"], "succeeded");
    })
    .await;
}
