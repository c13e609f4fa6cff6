//! Executes the walkthrough in the README: every command must print the output on the page.
//!
//! Blocks marked `console` are one session. This test starts and kills the broker; all other commands run in
//! a shell. Ids differ between runs: they are compared by form and position.

use crate::process::Broker;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Address of the broker on the page.
const ADDRESS: &str = "127.0.0.1:8080";
/// Command by which the page starts it; the arguments of cargo are those of the program.
const START: &str = "cargo run -- ";
/// Command by which the page kills it.
const KILL: &str = "kill -9 $(pidof sutler)";
/// A UUID has 36, a digest 32.
const ID_CHARS_MIN: usize = 32;
/// Printed by the shell after each command.
const DONE: &str = "=== that was all ===";

/// One command of the page and its output.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    output: String,
}

#[test]
fn every_command_of_the_walkthrough_prints_the_output_in_the_readme() {
    let steps = steps(include_str!("../../../../README.md"));
    assert!(steps.len() >= 10, "the walk was not found");
    let folder = tempfile::tempdir().expect("a folder");
    let mut shell = Shell::start(folder.path());
    let mut broker: Option<Broker> = None;
    let (mut here, mut page) = (Shapes::default(), Shapes::default());
    for Step { command, output } in steps {
        if let Some(arguments) = command.strip_prefix(START) {
            let arguments: Vec<&str> = arguments.split_whitespace().collect();
            broker = Some(Broker::start(folder.path(), &arguments));
            continue;
        }
        if command == KILL {
            drop(broker.take());
            continue;
        }
        let address = broker.as_ref().map_or(ADDRESS, Broker::address);
        shell.feed(&format!("BROKER=http://{address}"));
        let printed = shell.feed(&command.replace(ADDRESS, address));
        assert_eq!(here.of(&printed), page.of(&output), "after: {command}");
    }
}

/// The commands in `console` blocks of the page; a backslash continues a command.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step {
                    command: command.to_owned(),
                    output: String::new(),
                }),
                (None, Some(step)) if step.command.ends_with('\\') => {
                    step.command.push('\n');
                    step.command
                        .push_str(line.strip_prefix("> ").unwrap_or(line));
                }
                (None, Some(step)) => {
                    step.output.push_str(line);
                    step.output.push('\n');
                }
                (None, None) => panic!("output before any command: {line}"),
            },
        }
    }
    steps
}

/// Numbers ids and digests in the order of their appearance, so that two sessions are equal if they have the
/// same ids at the same positions.
#[derive(Default)]
struct Shapes {
    seen: Vec<String>,
}

impl Shapes {
    fn of(&mut self, text: &str) -> String {
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c) || c == '-';
        let mut shaped = String::new();
        let mut run = String::new();
        for c in text.trim_end().chars().chain(['\n']) {
            if is_hex(c) {
                run.push(c);
                continue;
            }
            // Shorter ones are words and numbers.
            match run.len() >= ID_CHARS_MIN {
                true => shaped.push_str(&self.number(&run)),
                false => shaped.push_str(&run),
            }
            run.clear();
            shaped.push(c);
        }
        shaped
    }

    fn number(&mut self, id: &str) -> String {
        let known = self.seen.iter().position(|it| it == id);
        let number = known.unwrap_or_else(|| {
            self.seen.push(id.to_owned());
            self.seen.len() - 1
        });
        format!("<id {number}, {} characters>", id.len())
    }
}

/// A bash process that executes one command after another.
struct Shell {
    process: Child,
    commands: ChildStdin,
    prints: BufReader<ChildStdout>,
}

impl Shell {
    fn start(folder: &Path) -> Self {
        let mut process = Command::new("bash")
            .arg("--norc")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash is installed");
        let commands = process.stdin.take().expect("it is piped");
        let prints = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut shell = Self {
            process,
            commands,
            prints,
        };
        shell.feed("exec 2>&1");
        shell
    }

    fn feed(&mut self, command: &str) -> String {
        let sent = write!(self.commands, "{command}\nprintf '\\n%s\\n' '{DONE}'\n");
        sent.and_then(|()| self.commands.flush())
            .expect("the shell listens");
        let mut printed = String::new();
        loop {
            let from = printed.len();
            let read = self
                .prints
                .read_line(&mut printed)
                .expect("the shell prints text");
            assert!(read > 0, "the shell ended after: {command}");
            if printed[from..].trim_end() == DONE {
                printed.truncate(from);
                return printed;
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn ids_are_compared_by_position_and_everything_else_exactly() {
    let one = "01a1deed-38af-7475-b7b5-bea2e13677bd";
    let two = "01a1dfff-0000-7475-b7b5-bea2e13677bd";
    let shape = |text: String| Shapes::default().of(&text);
    assert_eq!(
        shape(format!("{one} {two} {one} 202")),
        shape(format!("{two} {one} {two} 202\n"))
    );
    assert_ne!(shape(format!("{one} {one}")), shape(format!("{one} {two}")));
    assert_ne!(shape(format!("{one} 202")), shape(format!("{one} 200")));
    assert_ne!(shape(one.to_owned()), shape(one.replace('-', "")));
}
