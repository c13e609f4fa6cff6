//! Replaces certificates and catalogs under load.

use super::certificate_authority::{Authority, SignedCertificate};
use super::{Fixture, NAME};
use crate::fixture::test_catalog::{FIXED, catalog, catalog_without};
use crate::fixture::{WAIT_LIMIT, catalog_of};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Requests that must succeed during the changes.
const REQUESTS: usize = 400;
/// Number of clients.
const CLIENTS: usize = 4;

#[tokio::test]
async fn new_handshakes_use_the_new_certificate_and_open_connections_continue() {
    let fixture = Fixture::new(None).await;
    let kept = fixture
        .client(&fixture.authority)
        .build()
        .expect("a client");
    fixture.serves(&kept).await;
    let successors = Authority::new("successors");
    fixture.files.put_both(&successors.signs(NAME));
    fixture.port.running.reload_tls().expect("good files");
    // Its connection is open and needs no handshake.
    fixture.serves(&kept).await;
    let fresh = fixture
        .client(&fixture.authority)
        .build()
        .expect("a client");
    assert!(fixture.catalog(&fresh).await.is_err());
    let fresh = fixture.client(&successors).build().expect("a client");
    fixture.serves(&fresh).await;
    fixture.port.close().await;
}

#[tokio::test]
async fn a_bad_file_is_reported_and_leaves_the_served_certificate_in_place() {
    let fixture = Fixture::new(None).await;
    let other = fixture.authority.signs(NAME);
    for (name, text) in [
        ("tls.crt", "rubbish"),
        ("tls.key", other.key.as_str()),
        ("tls.key", ""),
    ] {
        let path = fixture.files.path(name);
        let was = std::fs::read_to_string(&path).expect("a file");
        fixture.files.put(name, text);
        let fault = fixture.port.running.reload_tls().expect_err("a bad file");
        assert!(fault.to_string().contains(name), "{fault}");
        fixture.serves_next_client().await;
        fixture.files.put(name, &was);
    }
    fixture.port.running.reload_tls().expect("good files again");
    fixture.port.close().await;
}

/// Installs one of two pairs of files in turn, and reloads.
fn replace(fixture: &Fixture, nth: usize, pairs: &[SignedCertificate; 2]) {
    fixture.files.put_both(&pairs[nth % 2]);
    fixture.port.running.reload_tls().expect("good files");
}

#[tokio::test]
async fn reloading_under_load_drops_no_request() {
    let fixture = Fixture::new(None).await;
    let pairs = [fixture.authority.signs(NAME), fixture.authority.signs(NAME)];
    let (sent, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let send = async |fresh: bool| {
        let kept = fixture
            .client(&fixture.authority)
            .build()
            .expect("a client");
        while sent.fetch_add(1, Ordering::SeqCst) < REQUESTS {
            if fresh {
                fixture.serves_next_client().await;
            } else {
                fixture.serves(&kept).await;
            }
        }
        done.store(true, Ordering::SeqCst);
    };
    let change = async {
        let mut reloads = 0;
        while !done.load(Ordering::SeqCst) {
            replace(&fixture, reloads, &pairs);
            let next = if reloads % 2 == 0 {
                catalog_without(FIXED)
            } else {
                catalog()
            };
            let replaced = fixture.port.running.replace_catalog(catalog_of(next)).await;
            replaced.expect("a good catalog");
            reloads += 1;
            tokio::task::yield_now().await;
        }
        reloads
    };
    let load = async {
        let senders = (0..CLIENTS).map(|n| send(n % 2 == 0));
        let mut all = Vec::from_iter(senders.map(Box::pin));
        std::future::poll_fn(|cx| {
            all.retain_mut(|it| it.as_mut().poll(cx).is_pending());
            if all.is_empty() {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    };
    let both = async { tokio::join!(load, change) };
    let ((), reloads) = tokio::time::timeout(WAIT_LIMIT * 4, both)
        .await
        .expect("in time");
    assert!(reloads > 10, "only {reloads} reloads");
    fixture.port.close().await;
}
