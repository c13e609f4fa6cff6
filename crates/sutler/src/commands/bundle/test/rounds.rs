//! Steps of each round of a bundle test. Pure.

use serde_json::{Map, Value};
use std::error::Error;
use sutler_bundle::{Action, Example, Manifest};
use sutler_bundle_service::LocalRequest;

/// One run through the lifecycle of an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestRound {
    First,
    Again,
    Killed,
}

impl TestRound {
    pub(super) const ALL: [Self; 3] = [Self::First, Self::Again, Self::Killed];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Again => "again",
            Self::Killed => "killed",
        }
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::First => "as platforms ask for it",
            Self::Again => {
                "once more, with a second deprovision when nothing is there, as after a failure"
            }
            Self::Killed => {
                "the process that starts an action is killed once it runs; the next one must find it"
            }
        }
    }
}

/// Description of the rounds.
pub(super) fn legend(examples: usize, rounds: &[TestRound]) -> String {
    let many = match examples {
        1 => "1 example".to_owned(),
        many => format!("{many} examples"),
    };
    let mut text = format!("{many}, through provision, bind, update, unbind and deprovision:\n");
    for round in rounds {
        text.push_str(&format!("  {:<7} {}\n", round.name(), round.meaning()));
    }
    text
}

/// One action of an example.
#[derive(Debug, PartialEq)]
pub(super) struct TestStep {
    pub(super) action: Action,
    pub(super) request: LocalRequest,
}

/// Steps of an example. Bind and unbind only for bindable plans, update only if the example has one.
pub(super) fn steps(manifest: &Manifest, example: &Example, round: TestRound) -> Vec<TestStep> {
    let bindable = manifest
        .plan(&example.plan)
        .is_some_and(|it| manifest.is_bindable(it));
    let of = |action, plan: Option<&str>, parameters: &Map<String, Value>| TestStep {
        action,
        request: LocalRequest {
            plan: plan.map(str::to_owned),
            parameters: parameters.clone(),
            binding: matches!(action, Action::Bind | Action::Unbind).then(|| "test".to_owned()),
        },
    };
    let none = Map::new();
    let plan = Some(example.plan.as_str());
    let mut steps = vec![of(Action::Provision, plan, &example.parameters)];
    let binds = bindable && !manifest.share_provision_credentials;
    if binds {
        steps.push(of(Action::Bind, None, &example.bind_parameters));
    }
    if let Some(update) = &example.update {
        steps.push(of(
            Action::Update,
            update.plan.as_deref(),
            &update.parameters,
        ));
    }
    if binds {
        steps.push(of(Action::Unbind, None, &none));
    }
    steps.push(of(Action::Deprovision, None, &none));
    if round == TestRound::Again {
        steps.push(of(Action::Deprovision, plan, &example.parameters));
    }
    steps
}

/// The examples; without any, one with the first plan and no parameters.
pub(super) fn examples(
    manifest: &Manifest,
    only: Option<&str>,
) -> Result<Vec<Example>, Box<dyn Error>> {
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

#[cfg(test)]
mod tests {
    use super::{TestRound, examples, steps};
    use sutler_bundle::{Action, Manifest};

    fn manifest(more: &str) -> Manifest {
        let text = format!(
            "name: n\ndescription: d\nbindable: true\nplans:\n- {{name: p, description: d, updates_to: [q], parameters: [{{name: x, type: integer, updatable: true}}]}}\n- {{name: q, description: d, bindable: false}}\n{more}"
        );
        Manifest::load(text.as_bytes(), "bundle.yml").expect("a manifest")
    }

    fn actions(manifest: &Manifest, round: TestRound) -> Vec<Action> {
        let examples = examples(manifest, None).expect("examples");
        let walked = steps(manifest, &examples[0], round).into_iter();
        walked.map(|it| it.action).collect()
    }

    #[test]
    fn a_round_has_every_action_of_the_example_and_its_plan() {
        use Action::{Bind, Deprovision, Provision, Unbind, Update};
        let plain = manifest("");
        let expected = [Provision, Bind, Unbind, Deprovision];
        assert_eq!(actions(&plain, TestRound::First), expected);
        let changed = manifest("examples: [{name: e, plan: p, update: {parameters: {x: 2}}}]");
        let expected = [Provision, Bind, Update, Unbind, Deprovision];
        assert_eq!(actions(&changed, TestRound::Killed), expected);
        let unbound = manifest("examples: [{name: e, plan: q}]");
        assert_eq!(
            actions(&unbound, TestRound::First),
            [Provision, Deprovision]
        );
    }

    #[test]
    fn a_removed_instance_is_deprovisioned_again_with_its_parameters() {
        let example = "examples: [{name: e, plan: p, parameters: {x: 2}}]";
        let manifest = manifest(example);
        let examples = examples(&manifest, Some("e")).expect("the example");
        let walked = steps(&manifest, &examples[0], TestRound::Again);
        let [.., first, second] = &walked[..] else {
            panic!("{walked:?}");
        };
        assert_eq!(first.action, Action::Deprovision);
        assert_eq!(
            (second.action, first.request.plan.as_deref()),
            (Action::Deprovision, None)
        );
        assert_eq!(second.request, walked[0].request);
    }

    #[test]
    fn an_unknown_example_is_refused_with_the_known_ones() {
        let manifest = manifest("examples: [{name: e, plan: p}]");
        let refused = examples(&manifest, Some("f")).expect_err("no such example");
        assert_eq!(
            refused.to_string(),
            "there is no such example; use one of: e"
        );
    }
}
