//! Laws of `classify` that hold for every answer, every request and every history.

use proptest::prelude::*;
use std::time::Duration;
use sutler_client::wire::{Answer, TransportError};
use sutler_client::{
    CleanupDuty, Incomplete, Meaning, OperationEvent, PollUpdate, ReplyContext, Sending, classify,
    decode,
};
use sutler_osb::{LastOperationResponse, OperationKind};

/// Any answer, or none.
fn outcomes() -> impl Strategy<Value = decode::WireResult> {
    let bodies = prop_oneof![
        Just(String::new()),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
        Just("<html>".to_owned()),
        "[a-zA-Z]{0,8}".prop_map(|word| format!(r#"{{"error":"{word}"}}"#)),
        prop::sample::select(vec![
            r#"{"error":"AsyncRequired"}"#,
            r#"{"error":"ConcurrencyError"}"#,
            r#"{"error":"RequiresApp","instance_usable":false}"#,
            r#"{"error":"MaintenanceInfoConflict","update_repeatable":false}"#,
            r#"{"state":"in progress","description":"x"}"#,
            r#"{"state":"succeeded"}"#,
            r#"{"state":"failed","instance_usable":false,"update_repeatable":false}"#,
            r#"{"state":"cancelled"}"#,
            r#"{"operation":"o"}"#,
            r#"{"operation":7}"#,
            r#"{"credentials":7}"#,
        ])
        .prop_map(str::to_owned),
        ".{0,40}",
    ];
    let retry = prop_oneof![
        Just(None),
        Just(Some("7".to_owned())),
        "[ -~]{0,20}".prop_map(Some)
    ];
    let answers = (100_u16..=999, bodies, retry).prop_map(|(status, body, retry)| {
        let headers: Vec<(&str, &str)> = retry
            .iter()
            .map(|value| ("Retry-After", value.as_str()))
            .collect();
        Ok(Answer::new(status, &headers, body))
    });
    let silences = prop::sample::select(vec![
        TransportError::NotSent("refused".to_owned()),
        TransportError::TimedOut(Duration::from_secs(1)),
        TransportError::Closed,
        TransportError::Garbage("x".to_owned()),
        TransportError::TooLong(1),
    ]);
    prop_oneof![8 => answers, 1 => silences.prop_map(Err)]
}

fn context() -> impl Strategy<Value = ReplyContext> {
    any::<(bool, bool, bool, bool)>().prop_map(|(before, without, retrievable, gone)| {
        ReplyContext {
            sending: if before {
                Sending::AfterUnknown
            } else {
                Sending::First
            },
            incomplete: if without {
                Incomplete::Unwanted
            } else {
                Incomplete::Accepted
            },
            bindings_retrievable: retrievable,
            missing_is_gone: gone,
        }
    })
}

/// The meaning without its body.
fn of_reply(
    kind: OperationKind,
    outcome: decode::WireResult,
    context: &ReplyContext,
) -> Meaning<()> {
    fn bare<B>(meaning: Meaning<B>) -> Meaning<()> {
        use sutler_client::Success;
        match meaning {
            Meaning::Succeeded(success) => Meaning::Succeeded(match success {
                Success::Now(_) => Success::Now(()),
                Success::Polled => Success::Polled,
                Success::FetchBinding => Success::FetchBinding,
                Success::Gone => Success::Gone,
            }),
            Meaning::Polling { update, after } => Meaning::Polling { update, after },
            Meaning::Rejected {
                reason,
                message,
                update_repeatable,
            } => Meaning::Rejected {
                reason,
                message,
                update_repeatable,
            },
            Meaning::Retry {
                cause,
                after,
                message,
            } => Meaning::Retry {
                cause,
                after,
                message,
            },
            Meaning::Unknown { question, message } => Meaning::Unknown { question, message },
            Meaning::Failed { cleanup, message } => Meaning::Failed { cleanup, message },
        }
    }
    let c = context;
    match kind {
        OperationKind::Provision => bare(classify(
            kind,
            OperationEvent::Reply(decode::provision(outcome)),
            c,
        )),
        OperationKind::Update => bare(classify(
            kind,
            OperationEvent::Reply(decode::update(outcome)),
            c,
        )),
        OperationKind::Bind => bare(classify(
            kind,
            OperationEvent::Reply(decode::bind(outcome)),
            c,
        )),
        OperationKind::Deprovision | OperationKind::Unbind => bare(classify(
            kind,
            OperationEvent::Reply(decode::delete(outcome)),
            c,
        )),
    }
}

fn creates(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::Provision | OperationKind::Bind)
}

/// Laws that hold for every meaning of every verb.
fn lawful<B>(kind: OperationKind, meaning: &Meaning<B>) -> Result<(), TestCaseError> {
    if let Meaning::Failed { cleanup, .. } = meaning {
        let fits = match cleanup {
            CleanupDuty::Mitigate | CleanupDuty::DeleteBeforeForgetting => creates(kind),
            CleanupDuty::Uncertain => kind == OperationKind::Update,
            CleanupDuty::StillThere => {
                matches!(kind, OperationKind::Deprovision | OperationKind::Unbind)
            }
        };
        prop_assert!(fits, "{kind:?} leaves {cleanup:?}");
    }
    if let Meaning::Rejected {
        update_repeatable: false,
        ..
    } = meaning
    {
        prop_assert_eq!(kind, OperationKind::Update);
    }
    if !meaning.leaves_usable() {
        prop_assert!(kind.may_say_instance_usable(), "{kind:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_answer_has_a_lawful_meaning(
        kind in prop::sample::select(OperationKind::ALL.to_vec()),
        outcome in outcomes(),
        context in context(),
    ) {
        let sent = !matches!(outcome, Err(TransportError::NotSent(_)));
        let meaning = of_reply(kind, outcome, &context);
        lawful(kind, &meaning)?;
        if !sent {
            prop_assert!(matches!(meaning, Meaning::Retry { .. }), "{meaning:?}");
        }
        // A resource that may have been created never counts as refused.
        if creates(kind) && context.sending == Sending::AfterUnknown {
            prop_assert!(!matches!(meaning, Meaning::Rejected { .. }), "{meaning:?}");
        }
    }

    #[test]
    fn every_poll_has_a_lawful_meaning(
        kind in prop::sample::select(OperationKind::ALL.to_vec()),
        outcome in outcomes(),
        context in context(),
    ) {
        let poll = decode::poll(outcome.clone());
        let meaning: Meaning<()> = classify(kind, OperationEvent::Poll(poll), &context);
        lawful(kind, &meaning)?;
        // Only a state, or the end of a delete, ends polling.
        let is_final = match outcome {
            Ok(answer) => {
                let state = serde_json::from_slice::<LastOperationResponse>(&answer.body).is_ok();
                (answer.status == 200 && state) || [404, 410].contains(&answer.status)
            }
            Err(_) => false,
        };
        let still_polling = matches!(meaning, Meaning::Polling { update: PollUpdate::Nothing(_), .. });
        prop_assert!(is_final || still_polling, "{meaning:?}");
    }
}
