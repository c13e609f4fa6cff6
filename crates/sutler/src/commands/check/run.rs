//! Runs a check with progress and signals: the first Ctrl-C or SIGTERM stops it and cleans up, the second
//! exits at once.

use super::exit::CheckCommandError;
use super::progress::CheckProgress;
use super::text::say;
use sutler_check::{Check, CheckError, Level, Options, Report, UnknownChoiceError};
use sutler_client::wire::Connection;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Runs a check to its end, or until a signal stops it.
pub(super) async fn to_the_end(
    connection: Connection,
    options: Options,
    level: Level,
) -> Result<Report, CheckCommandError> {
    let (stop, leave) = (CancellationToken::new(), CancellationToken::new());
    let bars = CheckProgress::new(level);
    let watch = tokio::spawn(watch(stop.clone(), leave.clone(), bars.clone()));
    let drawn = bars.clone();
    let outcome = Check::of(connection)
        .options(options)
        .progress(move |event| drawn.on_event(event))
        .stop(stop)
        .leave(leave)
        .run()
        .await;
    watch.abort();
    bars.finish();
    outcome.map_err(not_done)
}

/// Converts an error of the check into one of the command.
pub(super) fn not_done(why: CheckError) -> CheckCommandError {
    match why {
        CheckError::Unknown(unknown) => not_there(&unknown),
        CheckError::NoCatalog(why) => CheckCommandError::NotChecked(why),
    }
}

fn not_there(unknown: &UnknownChoiceError) -> CheckCommandError {
    let known = unknown.known.iter().map(String::as_str);
    let advice = match sutler_yaml::nearest(&unknown.name, known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => "`--dry-run` lists what there is".to_owned(),
    };
    CheckCommandError::Usage(format!(
        "no {} of the catalog is called {:?}; {advice}",
        unknown.kind, unknown.name
    ))
}

async fn watch(stop: CancellationToken, leave: CancellationToken, bars: CheckProgress) {
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
