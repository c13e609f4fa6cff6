//! A check with its progress and its signals: the first Ctrl-C or SIGTERM stops the walk and cleans
//! up, the second leaves at once.

use super::bars::Bars;
use super::end::NotDone;
use super::text::say;
use sutler_check::{Check, CheckError, Level, Options, Report, UnknownChoiceError};
use sutler_client::wire::Connection;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Runs a check to its end, or until somebody wants it to stop.
pub(super) async fn to_the_end(
    connection: Connection,
    options: Options,
    level: Level,
) -> Result<Report, NotDone> {
    let (stop, leave) = (CancellationToken::new(), CancellationToken::new());
    let bars = Bars::new(level);
    let watch = tokio::spawn(watch(stop.clone(), leave.clone(), bars.clone()));
    let told = bars.clone();
    let outcome = Check::of(connection)
        .options(options)
        .progress(move |event| told.tell(event))
        .stop(stop)
        .leave(leave)
        .run()
        .await;
    watch.abort();
    bars.finish();
    outcome.map_err(not_done)
}

/// Why there is no report, in words for the command line.
pub(super) fn not_done(why: CheckError) -> NotDone {
    match why {
        CheckError::Unknown(unknown) => not_there(&unknown),
        CheckError::NoCatalog(why) => NotDone::CheckError(why),
    }
}

fn not_there(unknown: &UnknownChoiceError) -> NotDone {
    let known = unknown.known.iter().map(String::as_str);
    let advice = match sutler_yaml::nearest(&unknown.name, known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => "`--dry-run` lists what there is".to_owned(),
    };
    NotDone::Usage(format!(
        "no {} of the catalog is called {:?}; {advice}",
        unknown.kind, unknown.name
    ))
}

async fn watch(stop: CancellationToken, leave: CancellationToken, bars: Bars) {
    let (Ok(mut interrupts), Ok(mut terms)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return;
    };
    let mut next = async || {
        tokio::select! {
            _ = interrupts.recv() => {}
            _ = terms.recv() => {}
        }
    };
    next().await;
    bars.suspended(|| say("stopping: removing what was made; once more to leave at once"));
    stop.cancel();
    next().await;
    leave.cancel();
}
