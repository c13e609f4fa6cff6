//! `sutler bundle test`: the examples of a bundle, each through a whole life, twice; and once more with
//! every owner of a run killed in the middle.

use super::run::{self, Place, Terminal};
use clap::Args;
use comfy_table::Table;
use serde_json::Map;
use std::error::Error;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use sutler_bundle::{Action, Example, KeptSecret, LocalRequest, Manifest, manifest_in};

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
    /// Leaves out the round in which owners of runs are killed
    #[arg(long)]
    no_crash: bool,
}

/// One action of an example.
struct Step {
    action: Action,
    request: LocalRequest,
}

/// How a step went.
struct Line {
    example: String,
    round: &'static str,
    action: Action,
    took: Duration,
    result: Result<&'static str, String>,
}

pub(super) async fn run(args: &TestArgs) -> super::CommandResult {
    let manifest = manifest_in(&args.folder)?;
    let examples = examples(&manifest, args.example.as_deref())?;
    let secrets = run::secrets(args.secrets.as_deref())?;
    let state = tempfile::tempdir()?;
    let rounds: &[&'static str] = match args.no_crash {
        true => &["first", "again"],
        false => &["first", "again", "killed"],
    };
    let mut lines = Vec::new();
    for example in &examples {
        for round in rounds {
            let life = Life {
                args,
                state: state.path(),
                secrets: &secrets,
                example,
                round,
            };
            lines.extend(life.walk(&manifest).await?);
        }
    }
    run::say(&table(&lines))?;
    let failed = lines.iter().filter(|it| it.result.is_err()).count();
    match failed {
        0 => run::say(&format!("{} steps, all done", lines.len())),
        _ => Err(format!("{failed} of {} steps failed", lines.len()).into()),
    }
}

/// One example in one round.
struct Life<'a> {
    args: &'a TestArgs,
    state: &'a Path,
    secrets: &'a [KeptSecret],
    example: &'a Example,
    round: &'static str,
}

impl Life<'_> {
    /// From provision to deprovision. A step that fails ends the walk, but what was made is removed.
    async fn walk(&self, manifest: &Manifest) -> Result<Vec<Line>, Box<dyn Error>> {
        let mut lines = Vec::new();
        for step in steps(manifest, self.example) {
            let failed = lines.iter().any(|it: &Line| it.result.is_err());
            if failed && step.action != Action::Deprovision {
                continue;
            }
            let begun = Instant::now();
            if self.round == "killed" {
                self.kill_an_owner(&step)?;
            }
            let result = self.step(step.action, step.request).await;
            lines.push(Line {
                example: self.example.name.clone(),
                round: self.round,
                action: step.action,
                took: begun.elapsed(),
                result,
            });
        }
        Ok(lines)
    }

    async fn step(&self, action: Action, request: LocalRequest) -> Result<&'static str, String> {
        let told = |error: Box<dyn Error>| error.to_string();
        let place = Place::open(&self.args.folder, Some(self.state)).map_err(told)?;
        let local = place.instance("test", self.secrets.to_vec());
        let mut local = local.map_err(told)?;
        let witness = Terminal::quiet();
        let gift = local.act(action, request, &witness).await;
        match gift.map_err(|fault| fault.to_string())?.nothing_to_do {
            true => Ok("not there"),
            false => Ok("done"),
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

/// The life of an example.
fn steps(manifest: &Manifest, example: &Example) -> Vec<Step> {
    let bindable = manifest
        .plan(&example.plan)
        .is_some_and(|it| manifest.is_bindable(it));
    let of = |action, plan: Option<&str>, parameters: &Map<_, _>, binding: Option<&str>| Step {
        action,
        request: LocalRequest {
            plan: plan.map(str::to_owned),
            parameters: parameters.clone(),
            binding: binding.map(str::to_owned),
        },
    };
    let none = Map::new();
    let mut steps = vec![of(
        Action::Provision,
        Some(&example.plan),
        &example.parameters,
        None,
    )];
    let binds = bindable && !manifest.share_provision_credentials;
    if binds {
        steps.push(of(
            Action::Bind,
            None,
            &example.bind_parameters,
            Some("test"),
        ));
    }
    if let Some(update) = &example.update {
        steps.push(of(
            Action::Update,
            update.plan.as_deref(),
            &update.parameters,
            None,
        ));
    }
    if binds {
        steps.push(of(Action::Unbind, None, &none, Some("test")));
    }
    steps.push(of(Action::Deprovision, None, &none, None));
    steps
}

/// The examples; a bundle without any is tried with its first plan.
fn examples(manifest: &Manifest, only: Option<&str>) -> Result<Vec<Example>, Box<dyn Error>> {
    let mut all = manifest.examples.clone();
    if let Some(name) = only {
        all.retain(|it| it.name == name);
        if all.is_empty() {
            let names: Vec<&str> = manifest
                .examples
                .iter()
                .map(|it| it.name.as_str())
                .collect();
            return Err(
                format!("there is no such example; use one of: {}", names.join(", ")).into(),
            );
        }
    }
    if let (true, Some(plan)) = (all.is_empty(), manifest.plans.first()) {
        all.push(Example {
            name: "without parameters".to_owned(),
            description: None,
            plan: plan.name.clone(),
            parameters: Map::new(),
            update: None,
            bind_parameters: Map::new(),
        });
    }
    Ok(all)
}

fn table(lines: &[Line]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["EXAMPLE", "ROUND", "ACTION", "TOOK", "RESULT"]);
    for line in lines {
        let result = match &line.result {
            Ok(word) => (*word).to_owned(),
            Err(sentence) => format!("FAILED: {sentence}"),
        };
        table.add_row([
            line.example.clone(),
            line.round.to_owned(),
            line.action.to_string(),
            format!("{} ms", line.took.as_millis()),
            result,
        ]);
    }
    table.trim_fmt()
}
