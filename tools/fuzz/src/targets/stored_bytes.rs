//! Bytes in stores and files: key rings, sealed texts, keys.

use super::Verdict;
use crate::properties::{refused, same};
use sutler_journal::{Key, KeyRing, Kind, OperationId, Realm, SealContext, SealError};

pub(super) const RING_WORDS: &[&str] = &[
    "2026:",
    "2025:",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "#",
    ":",
    "=",
    "\n",
    "a-._",
];

/// The ring that sealed the texts in the corpus.
const RING: &str = "2026:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n\
                    2025:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=\n";
/// Content of both sealed texts.
const PLAIN: &[u8] = b"hush: a text that was sealed";
const GENUINE: [&[u8]; 2] = [
    include_bytes!("../../corpus/sealed/by-the-current-key"),
    include_bytes!("../../corpus/sealed/by-an-older-key"),
];

pub(super) fn key_ring(input: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(input) else {
        return Ok("no text".to_owned());
    };
    match KeyRing::parse(text) {
        Ok(ring) => {
            let place = SealContext::Request(OperationId(Default::default()));
            let sealed = ring.seal(place, PLAIN);
            let opened = ring.open(place, &sealed).map(|(plain, _)| plain);
            same(
                &opened.as_deref(),
                &Ok(PLAIN),
                "does not open what it sealed",
            )?;
            let shown = format!("{ring:?}");
            let secrets = text.lines().filter_map(|line| line.split_once(':'));
            for (_, secret) in secrets.filter(|(_, secret)| secret.trim().len() > 40) {
                same(&shown.contains(secret.trim()), &false, "shows a key")?;
            }
            Ok(format!("ring of {}", shown.matches(',').count()))
        }
        Err(error) => refused(&error.to_string(), input),
    }
}

/// Only texts sealed by the ring open, and only in their context.
pub(super) fn sealed(input: &[u8]) -> Verdict {
    let ring = KeyRing::parse(RING).map_err(|error| error.to_string())?;
    let realm = Realm::new("broker").map_err(|error| error.to_string())?;
    let instance = Kind::new("instance");
    let key = |id: &str| Key::new(&realm, instance, &[id]).map_err(|error| error.to_string());
    let (here, there) = (key("here")?, key("there")?);
    let elsewhere = [
        SealContext::Document(&there),
        SealContext::Detail(OperationId(Default::default())),
    ];
    for place in elsewhere {
        same(&ring.open(place, input).is_err(), &true, "opens elsewhere")?;
    }
    match ring.open(SealContext::Document(&here), input) {
        Ok((plain, with)) => {
            same(
                &GENUINE.contains(&input),
                &true,
                "opens what was never sealed",
            )?;
            same(&plain.as_slice(), &PLAIN, "opens as something else")?;
            Ok(format!("opened: {with:?}"))
        }
        Err(error) => {
            same(
                &GENUINE.contains(&input),
                &false,
                "does not open what was sealed",
            )?;
            let kind = match &error {
                SealError::Layout => "layout",
                SealError::UnknownKey(_) => "key",
                SealError::Broken => "broken",
            };
            refused(&error.to_string(), input)?;
            Ok(kind.to_owned())
        }
    }
}

pub(super) fn key_bytes(input: &[u8]) -> Verdict {
    match Key::from_bytes(input) {
        Ok(key) => {
            same(&key.as_bytes(), &input, "has other bytes")?;
            let ids: Vec<&str> = (0..)
                .map(|n| key.id(n))
                .take_while(|id| !id.is_empty())
                .collect();
            let mut parts = vec![key.realm(), key.kind()];
            parts.extend(&ids);
            same(&parts.join("\0").as_bytes(), &input, "has other parts")?;
            Ok(format!("key with {} ids", ids.len()))
        }
        Err(error) => refused(&error.to_string(), input),
    }
}
