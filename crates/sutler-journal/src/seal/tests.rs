//! Tests of sealing: contexts, altered texts, rings and their replacement.

use super::{KeyId, KeyRing, KeyRingError, SealContext, SealError, SealedWith};
use crate::key::{Key, Kind, Realm};
use crate::operation::OperationId;

fn context(id: &str) -> Key {
    Key::new(&Realm::new("broker").unwrap(), Kind::new("instance"), &[id]).unwrap()
}

#[test]
fn a_sealed_text_opens_in_its_context_only() {
    let ring = KeyRing::ephemeral();
    let (here, there) = (context("a"), context("b"));
    let sealed = ring.seal(SealContext::Document(&here), b"a secret");
    assert!(!sealed.windows(8).any(|window| window == b"a secret"));
    let opened = ring.open(SealContext::Document(&here), &sealed);
    assert_eq!(opened, Ok((b"a secret".to_vec(), SealedWith::Current)));
    assert_eq!(
        ring.open(SealContext::Document(&there), &sealed),
        Err(SealError::Broken)
    );
    let elsewhere = SealContext::Request(OperationId::fresh());
    assert_eq!(ring.open(elsewhere, &sealed), Err(SealError::Broken));
}

#[test]
fn a_rotated_out_key_still_opens_and_is_reported_as_older() {
    let (old, new) = (KeyRing::fresh_line("2025"), KeyRing::fresh_line("2026"));
    let before = KeyRing::parse(&old).unwrap();
    let after = KeyRing::parse(&format!("# current\n{}\n{}", *new, *old)).unwrap();
    let key = context("a");
    let sealed = before.seal(SealContext::Document(&key), b"x");
    assert_eq!(
        after.open(SealContext::Document(&key), &sealed),
        Ok((b"x".to_vec(), SealedWith::Older))
    );
    let without = KeyRing::parse(&new).unwrap();
    let refused = without.open(SealContext::Document(&key), &sealed);
    assert_eq!(refused, Err(SealError::UnknownKey("2025".to_owned())));
}

#[test]
fn altered_and_foreign_bytes_never_open() {
    let ring = KeyRing::ephemeral();
    let key = context("a");
    let sealed = ring.seal(SealContext::Document(&key), b"text");
    for n in 0..sealed.len() {
        let mut altered = sealed.to_vec();
        altered[n] ^= 1;
        assert!(
            ring.open(SealContext::Document(&key), &altered).is_err(),
            "byte {n}"
        );
        assert!(
            ring.open(SealContext::Document(&key), &sealed[..n])
                .is_err(),
            "cut at {n}"
        );
    }
}

#[test]
fn a_bad_ring_is_refused_with_its_line() {
    assert_eq!(KeyRing::parse("# none\n").unwrap_err(), KeyRingError::Empty);
    assert_eq!(
        KeyRing::parse("\nshort:AAAA").unwrap_err(),
        KeyRingError::Line(2)
    );
    let line = KeyRing::fresh_line("a");
    let twice = KeyRing::parse(&format!("{}{}", *line, *line)).unwrap_err();
    assert_eq!(twice, KeyRingError::Twice("a".to_owned()));
}

#[test]
fn no_key_shows_in_debug() {
    let line = KeyRing::fresh_line("a");
    let ring = KeyRing::parse(&line).unwrap();
    assert_eq!(format!("{ring:?}"), "KeyRing(a, …)");
}

#[test]
fn a_replaced_ring_seals_with_its_first_key_and_opens_what_it_opened_before() {
    let lines: Vec<String> = ["k1", "k2", "k3"]
        .iter()
        .map(|id| KeyRing::fresh_line(id).to_string())
        .collect();
    let ring = |lines: &[&String]| {
        let lines: Vec<&str> = lines.iter().map(|it| it.as_str()).collect();
        KeyRing::parse(&lines.concat()).unwrap()
    };
    let key = context("a");
    let place = SealContext::Document(&key);
    let used = ring(&[&lines[0]]);
    let old = used.seal(place, b"x");
    used.replace(&ring(&[&lines[0], &lines[1]])).unwrap();
    assert_eq!(used.current().as_str(), "k1", "known, not in use");
    used.replace(&ring(&[&lines[2], &lines[0], &lines[1]]))
        .unwrap();
    used.replace(&ring(&[&lines[2], &lines[1]])).unwrap();
    assert_eq!(format!("{used:?}"), "KeyRing(k3, k2, k1, …)");
    let opened = used.open(place, &old).unwrap();
    assert_eq!(opened, (b"x".to_vec(), SealedWith::Older));
    let other = KeyRing::parse(&KeyRing::fresh_line("k2")).unwrap();
    let refused = used.replace(&other);
    assert_eq!(refused, Err(KeyRingError::Changed("k2".to_owned())));
    assert_eq!(used.current().as_str(), "k3", "nothing was changed");
}

#[test]
fn a_ring_without_the_key_that_seals_does_not_replace_it() {
    let (one, two) = (KeyRing::fresh_line("k1"), KeyRing::fresh_line("k2"));
    let used = KeyRing::parse(&one).unwrap();
    let other = KeyRing::parse(&two).unwrap();
    let refused = used.replace(&other);
    assert_eq!(refused, Err(KeyRingError::LacksCurrent("k1".to_owned())));
    assert_eq!(format!("{used:?}"), "KeyRing(k1, …)", "nothing was changed");
    let appended = KeyRing::parse(&format!("{}{}", *two, *one)).unwrap();
    used.replace(&appended).unwrap();
    assert_eq!(used.current().as_str(), "k2");
}

/// An older file looks the same to this process as the file after a rotation of which it missed a step.
#[test]
fn a_ring_that_begins_with_a_known_key_does_not_replace_one_whose_key_it_lacks() {
    let (one, two) = (KeyRing::fresh_line("k1"), KeyRing::fresh_line("k2"));
    let used = KeyRing::parse(&format!("{}{}", *two, *one)).unwrap();
    let refused = used.replace(&KeyRing::parse(&one).unwrap());
    assert_eq!(refused, Err(KeyRingError::LacksCurrent("k2".to_owned())));
    assert_eq!(
        format!("{used:?}"),
        "KeyRing(k2, k1, …)",
        "nothing was changed"
    );
}

#[test]
fn only_texts_of_older_keys_are_resealed() {
    let (old, new) = (KeyRing::fresh_line("old"), KeyRing::fresh_line("new"));
    let before = KeyRing::parse(&old).unwrap();
    let after = KeyRing::parse(&format!("{}{}", *new, *old)).unwrap();
    let key = context("a");
    let place = SealContext::Document(&key);
    let sealed = before.seal(place, b"x");
    assert_eq!(KeyId::of_sealed(&sealed).unwrap().as_str(), "old");
    let resealed = after.reseal(place, &sealed).unwrap().unwrap();
    assert_eq!(KeyId::of_sealed(&resealed).unwrap().as_str(), "new");
    let alone = KeyRing::parse(&new).unwrap();
    let opened = alone.open(place, &resealed).unwrap();
    assert_eq!(opened, (b"x".to_vec(), SealedWith::Current));
    assert_eq!(after.reseal(place, &resealed), Ok(None), "nothing to do");
    assert_eq!(after.reseal(place, b""), Ok(None), "nothing is sealed");
    assert_eq!(after.reseal(place, b"plain"), Err(SealError::Layout));
}

#[test]
fn a_check_value_tells_keys_of_one_id_apart_and_shows_nothing_of_them() {
    let line = KeyRing::fresh_line("k1");
    let (here, there) = (
        KeyRing::parse(&line).unwrap(),
        KeyRing::parse(&line).unwrap(),
    );
    let other = KeyRing::parse(&KeyRing::fresh_line("k1")).unwrap();
    let id = here.current();
    let value = here.check_value(&id).expect("a value");
    assert_eq!(Some(value.clone()), there.check_value(&id));
    assert_ne!(Some(value.clone()), other.check_value(&id));
    let key_digest = format!("{:02x?}", here.first().digest).replace([',', ' ', '[', ']'], "");
    assert!(
        !key_digest.starts_with(&value),
        "it is not the plain digest"
    );
    let unknown = KeyId::parse("k2").expect("an id");
    assert_eq!(here.check_value(&unknown), None);
}
