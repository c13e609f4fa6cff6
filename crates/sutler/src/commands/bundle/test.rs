//! `sutler bundle test`: takes each example of a bundle through its whole lifecycle, in several rounds.
//!
//! The steps of each round are in `test/rounds.rs` (pure); here they are run and their results printed.

mod rounds;

use super::environment::{BundleEnv, RunnerArgs};
use super::run::say;
use super::terminal::TerminalObserver;
use clap::Args;
use comfy_table::Table;
use rounds::{TestRound, TestStep, examples, legend, steps};
use std::error::Error;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use sutler_bundle::{Action, Example, Manifest};
use sutler_bundle_service::{OperatorSecret, manifest_in};

/// Arguments of `bundle test`.
#[derive(Args)]
pub(super) struct TestArgs {
    /// The bundle's folder
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Only this example
    #[arg(long, value_name = "NAME")]
    example: Option<String>,
    /// A file with secrets, as JSON: {"NAME": {"KEY": "value"}}
    #[arg(long, value_name = "FILE")]
    secrets: Option<PathBuf>,
    #[command(flatten)]
    runner: RunnerArgs,
    /// Leave out the round in which owners of runs are killed
    #[arg(long)]
    no_crash: bool,
}

/// Result of one step.
struct StepResult {
    example: String,
    round: TestRound,
    action: Action,
    took: Duration,
    result: Result<&'static str, StepFailure>,
}

/// Error of a step, with the output of its run.
struct StepFailure {
    sentence: String,
    output: String,
}

impl From<Box<dyn Error>> for StepFailure {
    fn from(error: Box<dyn Error>) -> Self {
        Self {
            sentence: error.to_string(),
            output: String::new(),
        }
    }
}

pub(super) async fn run(args: &TestArgs) -> super::CommandResult {
    let manifest = manifest_in(&args.folder)?;
    let examples = examples(&manifest, args.example.as_deref())?;
    let secrets = super::run::secrets(args.secrets.as_deref())?;
    let state = tempfile::tempdir()?;
    let rounds = match args.no_crash {
        true => &TestRound::ALL[..2],
        false => &TestRound::ALL[..],
    };
    say(&legend(examples.len(), rounds))?;
    let mut lines = Vec::new();
    for example in &examples {
        for round in rounds {
            let life = ExampleRun {
                args,
                state: state.path(),
                secrets: &secrets,
                example,
                round: *round,
            };
            lines.extend(life.walk(&manifest).await);
        }
    }
    say(&table(&lines))?;
    let failures = lines
        .iter()
        .filter_map(|it| Some((it, it.result.as_ref().err()?)));
    let mut failed = 0;
    for (line, failure) in failures {
        failed += 1;
        if !failure.output.is_empty() {
            let (example, round, action) = (&line.example, line.round.name(), line.action);
            let heading = format!("\noutput of the {action} of {example:?} ({round}):");
            say(&format!("{heading}\n{}", failure.output.trim_end()))?;
        }
    }
    match failed {
        0 => say(&format!("{} steps, all done", lines.len())),
        _ => Err(format!("{failed} of {} steps failed", lines.len()).into()),
    }
}

/// One example in one round.
struct ExampleRun<'a> {
    args: &'a TestArgs,
    state: &'a Path,
    secrets: &'a [OperatorSecret],
    example: &'a Example,
    round: TestRound,
}

impl ExampleRun<'_> {
    /// Runs the steps from provision to deprovision. After a failed step only the deprovision runs.
    async fn walk(&self, manifest: &Manifest) -> Vec<StepResult> {
        let mut lines: Vec<StepResult> = Vec::new();
        for step in steps(manifest, self.example, self.round) {
            let failed = lines.iter().any(|it| it.result.is_err());
            let cleaned = lines
                .last()
                .is_some_and(|it| it.action == Action::Deprovision);
            if failed && (step.action != Action::Deprovision || cleaned) {
                continue;
            }
            let begun = Instant::now();
            let action = step.action;
            let result = self.step(step, failed).await;
            lines.push(StepResult {
                example: self.example.name.clone(),
                round: self.round,
                action,
                took: begun.elapsed(),
                result,
            });
        }
        lines
    }

    async fn step(&self, step: TestStep, failed: bool) -> Result<&'static str, StepFailure> {
        // After a failure the clean-up runs without kills.
        if self.round == TestRound::Killed && !failed {
            self.kill_an_owner(&step)?;
        }
        let place = BundleEnv::open(&self.args.folder, Some(self.state), &self.args.runner)?;
        let mut local = place.instance("test", self.secrets.to_vec())?;
        let observer = TerminalObserver::quiet();
        match local.act(step.action, step.request, &observer).await {
            Ok(result) if result.nothing_to_do => Ok("not there"),
            Ok(_) => Ok("done"),
            Err(fault) => Err(StepFailure {
                sentence: fault.to_string(),
                output: observer.output_text(),
            }),
        }
    }

    /// Starts the action in another process and kills that process: the next one must find the run.
    fn kill_an_owner(&self, step: &TestStep) -> Result<(), Box<dyn Error>> {
        let parameters = tempfile::NamedTempFile::new()?;
        serde_json::to_writer(parameters.as_file(), &step.request.parameters)?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["bundle", "run", step.action.as_str()])
            .arg(&self.args.folder)
            .args(["--instance", "test", "--only-start", "--state"])
            .arg(self.state)
            .arg("--params")
            .arg(parameters.path());
        if let Some(plan) = &step.request.plan {
            command.args(["--plan", plan]);
        }
        if let Some(binding) = &step.request.binding {
            command.args(["--binding", binding]);
        }
        if let Some(secrets) = &self.args.secrets {
            command.arg("--secrets").arg(secrets);
        }
        self.args.runner.pass_on(&mut command);
        let mut owner = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let output = owner.stdout.take().map(std::io::BufReader::new);
        let mut line = String::new();
        output.map(|mut it| it.read_line(&mut line)).transpose()?;
        owner.kill()?;
        let ended = owner.wait_with_output()?;
        let why = String::from_utf8_lossy(&ended.stderr);
        match line.trim() {
            "started" => Ok(()),
            _ => Err(format!("the {} could not be started: {}", step.action, why.trim()).into()),
        }
    }
}

fn table(lines: &[StepResult]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["EXAMPLE", "ROUND", "ACTION", "TOOK", "RESULT"]);
    for line in lines {
        let result = match &line.result {
            Ok(word) => (*word).to_owned(),
            Err(failure) => format!("FAILED: {}", failure.sentence),
        };
        table.add_row([
            line.example.clone(),
            line.round.name().to_owned(),
            line.action.to_string(),
            format!("{} ms", line.took.as_millis()),
            result,
        ]);
    }
    table.trim_fmt()
}
