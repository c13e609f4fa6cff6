//! Certificates and catalogs that are replaced while requests come.

use super::certificate_authority::{Authority, SignedCertificate};
use super::{Fixture, NAME};
use crate::fixture::test_catalog::{FIXED, catalog, catalog_without};
use crate::fixture::{PATIENCE, catalog_of};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Requests that must come through while things change.
const REQUESTS: usize = 400;
/// Number of clients.
const CLIENTS: usize = 4;

#[tokio::test]
async fn new_handshakes_use_the_new_certificate_and_old_connections_go_on() {
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
async fn a_bad_file_leaves_what_is_served_as_it_is_and_says_so() {
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
        fixture.serves_the_next().await;
        fixture.files.put(name, &was);
    }
    fixture.port.running.reload_tls().expect("good files again");
    fixture.port.close().await;
}

/// Puts one of two pairs of files in place, by turns, and reloads.
fn replace(fixture: &Fixture, turn: usize, pairs: &[SignedCertificate; 2]) {
    fixture.files.put_both(&pairs[turn % 2]);
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
                fixture.serves_the_next().await;
            } else {
                fixture.serves(&kept).await;
            }
        }
        done.store(true, Ordering::SeqCst);
    };
    let change = async {
        let mut turns = 0;
        while !done.load(Ordering::SeqCst) {
            replace(&fixture, turns, &pairs);
            let next = if turns % 2 == 0 {
                catalog_without(FIXED)
            } else {
                catalog()
            };
            let replaced = fixture.port.running.replace_catalog(catalog_of(next)).await;
            replaced.expect("a good catalog");
            turns += 1;
            tokio::task::yield_now().await;
        }
        turns
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
    let ((), turns) = tokio::time::timeout(PATIENCE * 4, both)
        .await
        .expect("in time");
    assert!(turns > 10, "only {turns} reloads");
    fixture.port.close().await;
}
