//! Certificates and catalogs that are replaced while requests come.

use super::certificate_authority::{Authority, SignedCertificate};
use super::{NAME, Scene};
use crate::fixture::test_catalog::{FIXED, catalog, catalog_without};
use crate::fixture::{PATIENCE, catalog_of};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Requests that must come through while things change.
const REQUESTS: usize = 400;
/// Number of clients.
const CLIENTS: usize = 4;

#[tokio::test]
async fn new_handshakes_use_the_new_certificate_and_old_connections_go_on() {
    let scene = Scene::new(None).await;
    let kept = scene.client(&scene.authority).build().expect("a client");
    scene.serves(&kept).await;
    let successors = Authority::new("successors");
    scene.files.put_both(&successors.signs(NAME));
    scene.port.running.reload_tls().expect("good files");
    // Its connection is open and needs no handshake.
    scene.serves(&kept).await;
    let fresh = scene.client(&scene.authority).build().expect("a client");
    assert!(scene.catalog(&fresh).await.is_err());
    let fresh = scene.client(&successors).build().expect("a client");
    scene.serves(&fresh).await;
    scene.port.close().await;
}

#[tokio::test]
async fn a_bad_file_leaves_what_is_served_as_it_is_and_says_so() {
    let scene = Scene::new(None).await;
    let other = scene.authority.signs(NAME);
    for (name, text) in [
        ("tls.crt", "rubbish"),
        ("tls.key", other.key.as_str()),
        ("tls.key", ""),
    ] {
        let path = scene.files.path(name);
        let was = std::fs::read_to_string(&path).expect("a file");
        scene.files.put(name, text);
        let fault = scene.port.running.reload_tls().expect_err("a bad file");
        assert!(fault.to_string().contains(name), "{fault}");
        scene.serves_the_next().await;
        scene.files.put(name, &was);
    }
    scene.port.running.reload_tls().expect("good files again");
    scene.port.close().await;
}

/// Puts one of two pairs of files in place, by turns, and reloads.
fn replace(scene: &Scene, turn: usize, pairs: &[SignedCertificate; 2]) {
    scene.files.put_both(&pairs[turn % 2]);
    scene.port.running.reload_tls().expect("good files");
}

#[tokio::test]
async fn reloading_under_load_drops_no_request() {
    let scene = Scene::new(None).await;
    let pairs = [scene.authority.signs(NAME), scene.authority.signs(NAME)];
    let (sent, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let send = async |fresh: bool| {
        let kept = scene.client(&scene.authority).build().expect("a client");
        while sent.fetch_add(1, Ordering::SeqCst) < REQUESTS {
            if fresh {
                scene.serves_the_next().await;
            } else {
                scene.serves(&kept).await;
            }
        }
        done.store(true, Ordering::SeqCst);
    };
    let change = async {
        let mut turns = 0;
        while !done.load(Ordering::SeqCst) {
            replace(&scene, turns, &pairs);
            let next = if turns % 2 == 0 {
                catalog_without(FIXED)
            } else {
                catalog()
            };
            let replaced = scene.port.running.replace_catalog(catalog_of(next)).await;
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
    scene.port.close().await;
}
