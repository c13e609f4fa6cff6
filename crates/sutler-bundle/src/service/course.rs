//! One run from its beginning, or from wherever it is found, to its end.
//!
//! Looks first, always: whoever comes back after a crash finds what became of the run, and goes on from
//! there. A runner that does not answer is waited for within bounds; a run is never started because nobody
//! could be asked about it.

use super::outcome::Ending;
use super::redact::Redaction;
use super::scribe::Scribe;
use super::witness::Witness;
use crate::given::Given;
use crate::order::{Order, RunName};
use crate::runner::{Exit, Line, RunFault, Runner, Seen};
use std::time::Duration;
use sutler_broker::{Error, Result};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// Lines between a run and whoever writes them down.
const LINES_MAX: usize = 64;
/// How long output may wait to be passed on.
const PASS_ON_EVERY: Duration = Duration::from_millis(500);
/// First wait for a runner that does not answer; doubles up to the last.
const AGAIN_FIRST: Duration = Duration::from_millis(200);
const AGAIN_LAST: Duration = Duration::from_secs(10);
/// How much longer than the deadline of its run a runner may not answer.
const SILENCE: Duration = Duration::from_secs(900);

/// Brings a run to its end, and reads what it gave.
///
/// # Flow
/// Look; start it if it provably never started; watch it; read what it gave.
///
/// # Errors
/// It cannot be started, what it gave cannot be read, or the claim was lost.
pub async fn carry_out(
    runner: &dyn Runner,
    order: &Order,
    redaction: &Redaction,
    witness: &dyn Witness,
) -> Result<(Ending, Given)> {
    let name = order.name;
    let mut patience = Patience::new(order.limits.deadline);
    let mut ours = false;
    loop {
        let stepped = step(runner, order, redaction, witness, &mut ours).await?;
        let fault = match stepped {
            Ok(Some(Seen::Finished(exit))) => match runner.given(name).await {
                Ok(given) => return Ok((Ending::Exited(exit), received(name, redaction, given))),
                Err(fault) => fault,
            },
            Ok(Some(Seen::Lost(why))) => match runner.given(name).await {
                Ok(given) => return Ok((Ending::Lost(why), received(name, redaction, given))),
                Err(fault) => fault,
            },
            Ok(Some(Seen::NeverStarted)) => {
                return Ok((Ending::Exited(Exit::Stopped), Given::default()));
            }
            Ok(Some(Seen::Running) | None) => {
                patience.answered();
                continue;
            }
            Err(fault) => fault,
        };
        match fault {
            RunFault::Refused(sentence) => return Err(refused(sentence)),
            RunFault::Unavailable(sentence) => {
                if let Some(why) = patience.bear(name, sentence).await {
                    return Ok((Ending::Lost(why), Given::default()));
                }
            }
        }
    }
}

/// What a run gave, as it may be shown; what cannot be used of it is said to operators.
fn received(name: RunName, redaction: &Redaction, given: Given) -> Given {
    for sentence in &given.refused {
        tracing::warn!(run = %name, %sentence, "a bundle gave back something that cannot be used");
    }
    redaction.clean(given)
}

/// One step; `None`: look again.
async fn step(
    runner: &dyn Runner,
    order: &Order,
    redaction: &Redaction,
    witness: &dyn Witness,
    ours: &mut bool,
) -> Result<std::result::Result<Option<Seen>, RunFault>> {
    let seen = match runner.look(order.name).await {
        Ok(seen) => seen,
        Err(fault) => return Ok(Err(fault)),
    };
    match seen {
        Seen::NeverStarted if witness.cancelled().is_cancelled() => Ok(Ok(Some(seen))),
        Seen::NeverStarted => {
            *ours = true;
            Ok(runner.start(order).await.map(|()| None))
        }
        Seen::Lost(_) => Ok(Ok(Some(seen))),
        Seen::Running | Seen::Finished(_) => {
            if !*ours {
                *ours = true;
                witness.adopted().await?;
            }
            let followed = follow(runner, order.name, redaction, witness).await?;
            Ok(followed.map(Some))
        }
    }
}

/// Watches a run to its end, passes on what it says, and stops it when it is cancelled.
async fn follow(
    runner: &dyn Runner,
    name: RunName,
    redaction: &Redaction,
    witness: &dyn Witness,
) -> Result<std::result::Result<Seen, RunFault>> {
    let (said, mut lines) = mpsc::channel(LINES_MAX);
    let mut scribe = Scribe::new(witness, redaction.afresh());
    let mut watch = std::pin::pin!(runner.watch(name, said));
    let mut stopping = false;
    let mut open = true;
    let seen = loop {
        tokio::select! {
            biased;
            line = lines.recv(), if open => match line {
                Some(line) => hear(line, &mut scribe, redaction, witness).await?,
                None => open = false,
            },
            seen = &mut watch => break seen,
            () = witness.cancelled().cancelled(), if !stopping => {
                stopping = true;
                if let Err(fault) = runner.stop(name).await {
                    tracing::warn!(run = %name, error = %fault, "a run could not be stopped; its deadline ends it");
                }
            }
            () = sleep(PASS_ON_EVERY), if scribe.has_more() => scribe.pass_on().await?,
        }
    };
    while let Ok(line) = lines.try_recv() {
        hear(line, &mut scribe, redaction, witness).await?;
    }
    scribe.finish().await?;
    Ok(seen)
}

async fn hear(
    line: Line,
    scribe: &mut Scribe<'_>,
    redaction: &Redaction,
    witness: &dyn Witness,
) -> Result<()> {
    match line {
        Line::Output(bytes) => scribe.take(&bytes).await,
        Line::Progress(mut progress) => {
            progress.text = redaction.clean_text(&progress.text);
            witness.progress(&progress).await
        }
    }
}

fn refused(sentence: String) -> Error {
    Error::failed(
        "The bundle of this service cannot be run. The operator of the service broker can see why.",
    )
    .because(sentence)
}

/// How long a runner that does not answer is waited for.
struct Patience {
    limit: Duration,
    since: Option<Instant>,
    wait: Duration,
}

impl Patience {
    fn new(deadline: Duration) -> Self {
        Self {
            limit: deadline.saturating_add(SILENCE),
            since: None,
            wait: AGAIN_FIRST,
        }
    }

    fn answered(&mut self) {
        self.since = None;
        self.wait = AGAIN_FIRST;
    }

    /// Waits; a sentence when there is nothing left to wait for.
    async fn bear(&mut self, name: RunName, sentence: String) -> Option<String> {
        let since = *self.since.get_or_insert_with(Instant::now);
        tracing::warn!(run = %name, error = %sentence, "a runner does not answer; asking again");
        if since.elapsed() >= self.limit {
            return Some(format!(
                "the runner did not answer for too long: {sentence}"
            ));
        }
        sleep(self.wait).await;
        self.wait = (self.wait * 2).min(AGAIN_LAST);
        None
    }
}
