//! Drives one run to its end, from its start or from any state it is found in.
//!
//! It always reads the status first: after a crash it continues with the run that exists. A runner that does not
//! answer is retried within a budget; a run is never started because its status is unknown, and never given up as
//! lost while it may still be running.

use super::log_writer::RedactingLogWriter;
use super::outcome::Ending;
use super::redact::Redaction;
use super::run_observer::RunObserver;
use std::time::Duration;
use sutler_broker::{Error, Result};
use sutler_runner::{
    Exit, RunError, RunEvent, RunName, RunProgress, RunResult, RunSpec, RunStatus, Runner,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

/// Capacity of the channel of output lines.
const LINES_MAX: usize = 64;
/// Maximum delay of output.
const PASS_ON_EVERY: Duration = Duration::from_millis(500);
/// First wait for a runner that does not answer; doubles up to the maximum.
const AGAIN_FIRST: Duration = Duration::from_millis(200);
const AGAIN_LAST: Duration = Duration::from_secs(10);
/// How long after the deadline of its run a runner may not answer.
const SILENCE: Duration = Duration::from_secs(900);
/// How long a start that is not wanted any more may take to return by itself: most take a moment, and one that is
/// dropped at once might still begin unnoticed.
const START_GRACE: Duration = Duration::from_secs(3);

/// A run to drive to its end.
pub(super) struct RunTask<'a> {
    pub(super) name: RunName,
    pub(super) deadline: Duration,
    pub(super) redaction: &'a Redaction,
}

/// Error for operators when a start had no effect; the next one follows after a pause.
const UNDONE: &str = "The run was gone before it began, and is started again: see what ends processes or \
                      removes containers here.";

/// Drives a run to its end, and reads its result.
///
/// # Flow
/// Read the status; if the run provably never started, build the run spec (`make`) and start it; watch it; read its
/// result. A lost run is stopped, if possible, before it is reported as lost.
///
/// # Errors
/// The run spec cannot be built, the run cannot be started, or the claim was lost.
pub(super) async fn drive_run(
    runner: &dyn Runner,
    task: &RunTask<'_>,
    make: impl Fn() -> std::result::Result<RunSpec, String> + Send,
    observer: &dyn RunObserver,
) -> Result<(Ending, RunResult)> {
    let mut budget = RetryBudget::new(task.deadline);
    let mut driver = RunDriver {
        runner,
        task,
        observer,
        make,
        run_spec: None,
        begun: false,
        ours: false,
        late: false,
    };
    loop {
        let fault = match driver.step().await? {
            Ok(DriverStep::On) => {
                budget.answered();
                continue;
            }
            Ok(DriverStep::Unbegun(exit)) => {
                return Ok((Ending::Exited(exit), RunResult::default()));
            }
            Ok(DriverStep::Ended(exit)) => match driver.result().await {
                Ok(result) => return Ok((Ending::Exited(exit), result)),
                Err(fault) => fault,
            },
            Ok(DriverStep::Lost(why)) => return driver.lost(why, &mut budget).await,
            Err(fault) => fault,
        };
        match fault {
            RunError::Refused(sentence) => return Err(refused(sentence)),
            RunError::Unavailable(sentence) => {
                if let Some(why) = budget.wait(task.name, sentence).await {
                    return driver.lost(why, &mut budget).await;
                }
            }
        }
    }
}

/// Result of a step.
enum DriverStep {
    /// Read the status again.
    On,
    /// It never started, and is not wanted any more.
    Unbegun(Exit),
    Ended(Exit),
    Lost(String),
}

/// State of the loop.
struct RunDriver<'a, M> {
    runner: &'a dyn Runner,
    task: &'a RunTask<'a>,
    observer: &'a dyn RunObserver,
    /// Builds the run spec; called again if the runner died before the run began.
    make: M,
    run_spec: Option<RunSpec>,
    /// Whether it was started here since its status was last `NeverStarted`.
    begun: bool,
    /// Whether it was started here, or its adoption was reported.
    ours: bool,
    /// Whether it did not start within its deadline.
    late: bool,
}

impl<M: Fn() -> std::result::Result<RunSpec, String> + Send> RunDriver<'_, M> {
    async fn step(&mut self) -> Result<std::result::Result<DriverStep, RunError>> {
        let status = match self.runner.status(self.task.name).await {
            Ok(status) => status,
            Err(fault) => return Ok(Err(fault)),
        };
        let status = match status {
            RunStatus::NeverStarted if self.observer.cancelled().is_cancelled() => {
                return Ok(Ok(DriverStep::Unbegun(Exit::Stopped)));
            }
            RunStatus::NeverStarted if self.late => {
                return Ok(Ok(DriverStep::Unbegun(Exit::Deadline)));
            }
            RunStatus::NeverStarted if std::mem::take(&mut self.begun) => {
                return Ok(Err(RunError::Unavailable(UNDONE.to_owned())));
            }
            RunStatus::NeverStarted => {
                let started = self.start().await?;
                self.begun = started.is_ok();
                return Ok(started.map(|()| DriverStep::On));
            }
            RunStatus::Lost(_) => status,
            RunStatus::Running | RunStatus::Finished(_) => {
                // Not needed any more, and it may be large.
                self.run_spec = None;
                if !self.ours {
                    self.ours = true;
                    self.observer.adopted().await?;
                }
                let RunTask {
                    name, redaction, ..
                } = self.task;
                match follow(self.runner, *name, redaction, self.observer).await? {
                    Ok(status) => status,
                    Err(fault) => return Ok(Err(fault)),
                }
            }
        };
        Ok(Ok(match status {
            RunStatus::Finished(exit) => DriverStep::Ended(exit),
            RunStatus::Lost(why) => DriverStep::Lost(why),
            RunStatus::Running | RunStatus::NeverStarted => DriverStep::On,
        }))
    }

    /// Starts the run. An image may have to be pulled first, so neither a cancellation nor the deadline waits for
    /// the return; the next status shows the result.
    async fn start(&mut self) -> Result<std::result::Result<(), RunError>> {
        let run_spec = match self.run_spec.take() {
            Some(run_spec) => run_spec,
            None => (self.make)().map_err(refused)?,
        };
        let run_spec = self.run_spec.insert(run_spec);
        self.ours = true;
        let mut start = self.runner.start(run_spec);
        tokio::select! {
            biased;
            started = &mut start => return Ok(started),
            () = self.observer.cancelled().cancelled() => {}
            () = sleep(self.task.deadline) => self.late = true,
        }
        match timeout(START_GRACE, start).await {
            Ok(started) => Ok(started),
            Err(_) => Ok(Ok(())),
        }
    }

    async fn result(&mut self) -> std::result::Result<RunResult, RunError> {
        let RunTask {
            name, redaction, ..
        } = self.task;
        let result = self.runner.result(*name).await?;
        for sentence in &result.refused {
            tracing::warn!(run = %name, %sentence, "a bundle gave back something that cannot be used");
        }
        Ok(redaction.clean(result))
    }

    /// Ending of a run that cannot be found any more. Returns only when it is certain that it is not running
    /// somewhere, because the caller may run it again.
    async fn lost(&mut self, why: String, budget: &mut RetryBudget) -> Result<(Ending, RunResult)> {
        let name = self.task.name;
        let mut reported = false;
        let ending = loop {
            let fault = match self.runner.stop(name).await {
                Ok(()) => break Ending::Lost(why),
                Err(fault) => fault.to_string(),
            };
            if !reported {
                reported = true;
                self.observer.progress(&waits()).await?;
            }
            if let Some(fault) = budget.wait(name, fault).await {
                break Ending::Unreachable(format!("{why}; and it cannot be ended: {fault}"));
            }
        };
        // The readable part of the result is for clean-up.
        Ok((ending, self.result().await.unwrap_or_default()))
    }
}

/// Progress shown while a lost run is being ended.
fn waits() -> RunProgress {
    RunProgress {
        text: "The run is lost. Nothing is done before it is certain that it has ended.".to_owned(),
        percent: None,
    }
}

/// Watches a run to its end, forwards its output, and stops it when it is cancelled.
async fn follow(
    runner: &dyn Runner,
    name: RunName,
    redaction: &Redaction,
    observer: &dyn RunObserver,
) -> Result<std::result::Result<RunStatus, RunError>> {
    let (events, mut lines) = mpsc::channel(LINES_MAX);
    let mut scribe = RedactingLogWriter::new(observer, redaction.restart());
    let mut watch = std::pin::pin!(runner.watch(name, events));
    let mut stopping = false;
    let mut open = true;
    let status = loop {
        tokio::select! {
            biased;
            line = lines.recv(), if open => match line {
                Some(line) => forward(line, &mut scribe, redaction, observer).await?,
                None => open = false,
            },
            status = &mut watch => break status,
            () = observer.cancelled().cancelled(), if !stopping => {
                stopping = true;
                if let Err(fault) = runner.stop(name).await {
                    tracing::warn!(run = %name, error = %fault, "a run could not be stopped; its deadline ends it");
                }
            }
            () = sleep(PASS_ON_EVERY), if scribe.has_more() => scribe.pass_on().await?,
        }
    };
    while let Ok(line) = lines.try_recv() {
        forward(line, &mut scribe, redaction, observer).await?;
    }
    scribe.finish().await?;
    Ok(status)
}

async fn forward(
    line: RunEvent,
    scribe: &mut RedactingLogWriter<'_>,
    redaction: &Redaction,
    observer: &dyn RunObserver,
) -> Result<()> {
    match line {
        RunEvent::Output(bytes) => scribe.take(&bytes).await,
        RunEvent::Progress(mut progress) => {
            progress.text = redaction.clean_text(&progress.text);
            observer.progress(&progress).await
        }
    }
}

fn refused(sentence: String) -> Error {
    Error::failed(
        "The bundle of this service cannot be run. The operator of the service broker can see why.",
    )
    .because(sentence)
}

/// Limits how long a runner that does not answer is retried.
struct RetryBudget {
    limit: Duration,
    since: Option<Instant>,
    wait: Duration,
}

impl RetryBudget {
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

    /// Waits; returns a sentence when the budget is used up.
    async fn wait(&mut self, name: RunName, sentence: String) -> Option<String> {
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
