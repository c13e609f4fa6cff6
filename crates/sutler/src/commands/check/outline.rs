//! `--dry-run`: prints the steps of a check, from the catalog alone.

use super::exit::{CheckCommandError, CheckOutcome};
use super::run::not_done;
use super::text::print;
use owo_colors::OwoColorize as _;
use std::fmt::Write as _;
use sutler_check::{Check, Options, Outline, PlanOutline, SentParameters};
use sutler_client::wire::Connection;
use sutler_yaml::one_line;

pub(super) async fn run(
    connection: Connection,
    options: Options,
) -> Result<CheckOutcome, CheckCommandError> {
    let outline = Check::of(connection).options(options).outline().await;
    print(&render(&outline.map_err(not_done)?))?;
    Ok(CheckOutcome::Fine)
}

fn render(outline: &Outline) -> String {
    let mut text = String::new();
    for plan in &outline.plans {
        one(plan, &mut text);
    }
    let _ = writeln!(
        text,
        "{} plans would be walked: {} cases of the broker and {} of each plan; at most {} instances and {} bindings are made, and removed again. Nothing was changed.",
        outline.plans.len(),
        outline.broker_cases,
        outline.plan_cases,
        outline.at_most.instances,
        outline.at_most.bindings
    );
    text
}

fn one(plan: &PlanOutline, text: &mut String) {
    let name = format!("{}/{}", plan.service, plan.plan);
    let _ = writeln!(
        text,
        "{} ({})",
        one_line(&name).bold(),
        one_line(&plan.plan_id)
    );
    let bindings = match plan.at_most.bindings {
        0 => "no bindings: the plan is not bindable".to_owned(),
        many => format!("{many} bindings"),
    };
    let _ = writeln!(
        text,
        "  at most {} instances, {bindings}",
        plan.at_most.instances
    );
    for (verb, sent) in [
        ("provision", &plan.provision),
        ("update", &plan.update),
        ("bind", &plan.bind),
    ] {
        let words = match sent {
            SentParameters::Nothing => "no parameters".to_owned(),
            SentParameters::Derived(value) => format!("{value} (from the schema)"),
            SentParameters::Given(value) => format!("{value} (given)"),
            SentParameters::Unknown(why) => format!("no parameters: {why}"),
        };
        let _ = writeln!(text, "  {verb}: {}", one_line(&words));
    }
}
