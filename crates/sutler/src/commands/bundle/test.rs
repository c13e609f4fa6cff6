//! `sutler bundle test`: the examples of a bundle, each through a whole life, in several rounds.
//!
//! What is done in which round is in `test/rounds.rs`, pure; here it is done and told.

mod rounds;

use super::place::{Place, RunnerArgs};
use super::run::say;
use super::terminal::Terminal;
use clap::Args;
use comfy_table::Table;
use rounds::{Round, Step, examples, legend, steps};
use std::error::Error;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use sutler_bundle::{Action, Example, Manifest};
use sutler_bundle_service::{OperatorSecret, manifest_in};

/// What is tested.
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
    /// Leaves out the round in which owners of runs are killed
    #[arg(long)]
    no_crash: bool,
}

/// How a step went.
struct Line {
    example: String,
    round: Round,
    action: Action,
    took: Duration,
    result: Result<&'static str, Failure>,
}

/// Why a step failed, and what its run said.
struct Failure {
    sentence: String,
    said: String,
}

impl From<Box<dyn Error>> for Failure {
    fn from(error: Box<dyn Error>) -> Self {
        Self {
            sentence: error.to_string(),
            said: String::new(),
        }
    }
}

pub(super) async fn run(args: &TestArgs) -> super::CommandResult {
    let manifest = manifest_in(&args.folder)?;
    let examples = examples(&manifest, args.example.as_deref())?;
    let secrets = super::run::secrets(args.secrets.as_deref())?;
    let state = tempfile::tempdir()?;
    let rounds = match args.no_crash {
        true => &Round::ALL[..2],
        false => &Round::ALL[..],
    };
    say(&legend(examples.len(), rounds))?;
    let mut lines = Vec::new();
    for example in &examples {
        for round in rounds {
            let life = Life {
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
        if !failure.said.is_empty() {
            let (example, round, action) = (&line.example, line.round.name(), line.action);
            let heading = format!("\nwhat the {action} of {example:?} said ({round}):");
            say(&format!("{heading}\n{}", failure.said.trim_end()))?;
        }
    }
    match failed {
        0 => say(&format!("{} steps, all done", lines.len())),
        _ => Err(format!("{failed} of {} steps failed", lines.len()).into()),
    }
}

/// One example in one round.
struct Life<'a> {
    args: &'a TestArgs,
    state: &'a Path,
    secrets: &'a [OperatorSecret],
    example: &'a Example,
    round: Round,
}

impl Life<'_> {
    /// From provision to deprovision. A step that fails ends the walk, but what was made is removed.
    async fn walk(&self, manifest: &Manifest) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
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
            lines.push(Line {
                example: self.example.name.clone(),
                round: self.round,
                action,
                took: begun.elapsed(),
                result,
            });
        }
        lines
    }

    async fn step(&self, step: Step, failed: bool) -> Result<&'static str, Failure> {
        // What is left of a walk that failed is removed without ado.
        if self.round == Round::Killed && !failed {
            self.kill_an_owner(&step)?;
        }
        let place = Place::open(&self.args.folder, Some(self.state), &self.args.runner)?;
        let mut local = place.instance("test", self.secrets.to_vec())?;
        let witness = Terminal::quiet();
        match local.act(step.action, step.request, &witness).await {
            Ok(gift) if gift.nothing_to_do => Ok("not there"),
            Ok(_) => Ok("done"),
            Err(fault) => Err(Failure {
                sentence: fault.to_string(),
                said: witness.heard(),
            }),
        }
    }

    /// Starts the action in another process, and kills that: the run must be found by whoever comes next.
    fn kill_an_owner(&self, step: &Step) -> Result<(), Box<dyn Error>> {
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
        let said = owner.stdout.take().map(std::io::BufReader::new);
        let mut line = String::new();
        said.map(|mut it| it.read_line(&mut line)).transpose()?;
        owner.kill()?;
        let ended = owner.wait_with_output()?;
        let why = String::from_utf8_lossy(&ended.stderr);
        match line.trim() {
            "started" => Ok(()),
            _ => Err(format!("the {} could not be started: {}", step.action, why.trim()).into()),
        }
    }
}

fn table(lines: &[Line]) -> String {
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
