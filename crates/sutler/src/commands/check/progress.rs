//! Progress on a terminal: a bar of plans, a line for each plan under test, and failures as they occur.
//! Nothing is drawn if standard error is not a terminal.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use owo_colors::OwoColorize as _;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use sutler_check::{Event, Level, Subject};

/// Handle of the bars; takes events from any task.
#[derive(Clone)]
pub(super) struct CheckProgress {
    drawn: Option<Arc<ProgressBars>>,
}

struct ProgressBars {
    all: MultiProgress,
    plans: ProgressBar,
    walks: Mutex<BTreeMap<Subject, ProgressBar>>,
    /// Failures of this level and stronger ones are printed at once.
    level: Level,
}

impl CheckProgress {
    pub(super) fn new(level: Level) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { drawn: None };
        }
        let all = MultiProgress::new();
        let plans = all.add(ProgressBar::new(0));
        plans.set_style(style("{bar:30} {pos}/{len} plans {msg}"));
        plans.set_message("reading the catalog");
        let walks = Mutex::default();
        Self {
            drawn: Some(Arc::new(ProgressBars {
                all,
                plans,
                walks,
                level,
            })),
        }
    }

    pub(super) fn on_event(&self, event: &Event) {
        if let Some(drawn) = &self.drawn {
            drawn.on_event(event);
        }
    }

    /// Prints something while the bars are hidden.
    pub(super) fn suspended(&self, say: impl FnOnce()) {
        match &self.drawn {
            Some(drawn) => drawn.all.suspend(say),
            None => say(),
        }
    }

    pub(super) fn finish(&self) {
        if let Some(drawn) = &self.drawn {
            drawn.plans.finish_and_clear();
            let _ = drawn.all.clear();
        }
    }
}

impl ProgressBars {
    fn on_event(&self, event: &Event) {
        match event {
            Event::Planned { plans } => {
                self.plans.set_length(*plans as u64);
                self.plans.set_message("");
            }
            Event::Began { subject } => {
                let bar = self.all.add(ProgressBar::new_spinner());
                bar.set_style(style("  {prefix}: {msg}"));
                bar.set_prefix(plain(&subject.to_string()));
                self.walks().insert(subject.clone(), bar);
            }
            Event::Judged { subject, case } => {
                if let Some(bar) = self.walks().get(subject) {
                    bar.set_message(case.name);
                }
            }
            Event::Failed { subject, case } if case.level <= self.level => {
                let line = format!(
                    "{} {} {} of {}",
                    "failed".red().bold(),
                    case.level,
                    case.name,
                    plain(&subject.to_string())
                );
                self.all.suspend(|| super::text::say(&line));
            }
            Event::Failed { .. } => {}
            Event::Ended { subject } => {
                if let Some(bar) = self.walks().remove(subject) {
                    bar.finish_and_clear();
                }
                self.plans.inc(1);
            }
            Event::CleaningUp { left } => {
                self.plans
                    .set_message(format!("removing what was made: {left} to look at"));
            }
        }
    }

    fn walks(&self) -> std::sync::MutexGuard<'_, BTreeMap<Subject, ProgressBar>> {
        self.walks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A name without control characters.
fn plain(text: &str) -> String {
    sutler_yaml::one_line(text)
}
