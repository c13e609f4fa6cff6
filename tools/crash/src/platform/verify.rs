//! After a restart: everything acknowledged must exist, and nothing else.

use super::{Platform, PlatformAction, RequestMode, Stop, unexpected};
use crate::expected_state::{AcknowledgedState, ExpectedFetch, ExpectedState};
use crate::http_client::HttpResponse;
use crate::violation::CheckResult;

impl Platform {
    /// Checks the expected state of all resources.
    pub(super) async fn verify(&mut self) -> Result<(), Stop> {
        self.verify_pending().await?;
        self.verify_one(None).await?;
        let names: Vec<&'static str> = self.bindings.keys().copied().collect();
        for name in names {
            self.verify_one(Some(name)).await?;
        }
        Ok(())
    }

    /// Checks the expected state of one resource.
    pub(super) async fn verify_one(&mut self, binding: Option<&'static str>) -> Result<(), Stop> {
        let known = match binding {
            Some(name) => self.bindings.get(name).cloned().unwrap_or_default(),
            None => self.known.clone(),
        };
        // A delete of the instance deletes its bindings at any moment.
        let deleting = self
            .known
            .pending
            .as_ref()
            .is_some_and(|it| it.verb == "deprovision");
        let deleted_with_instance = binding.is_some() && deleting;
        let fetched = self.fetch(binding).await?;
        let expected = match known.fetchable() {
            ExpectedFetch::Exactly if deleted_with_instance => ExpectedFetch::Whatever,
            other => other,
        };
        check_fetched(&known, &fetched, expected)?;
        if known.pending.is_none() && !deleted_with_instance {
            self.repeat_settled(binding, &known.settled).await?;
        }
        Ok(())
    }

    /// A repeated request for a finished change gets 200 if the resource exists, 410 if it was deleted.
    async fn repeat_settled(
        &mut self,
        binding: Option<&'static str>,
        settled: &AcknowledgedState,
    ) -> Result<(), Stop> {
        let (act, status) = match (settled, binding) {
            (AcknowledgedState::Never, _) => return Ok(()),
            (AcknowledgedState::There(_), None) => (PlatformAction::Provision, 200),
            (AcknowledgedState::There(_), Some(name)) => (PlatformAction::Bind(name), 200),
            (AcknowledgedState::Gone, None) => (PlatformAction::Deprovision, 410),
            (AcknowledgedState::Gone, Some(name)) => (PlatformAction::Unbind(name), 410),
        };
        // While the instance changes, the response to a repeated bind is not determined.
        if binding.is_some() && self.known.pending.is_some() {
            return Ok(());
        }
        let answer = self.send_action(act, RequestMode::Async).await?;
        if answer.status != status {
            return Err(unexpected("what was acknowledged, asked for again,", &answer).into());
        }
        Ok(())
    }

    /// An operation named by a 202 exists, has not failed, and is joined by a repeated request.
    async fn verify_pending(&mut self) -> Result<(), Stop> {
        for act in self.pending_acts() {
            let Some(operation) = self.expected_of(act).operation().map(str::to_owned) else {
                continue;
            };
            let polled = self.poll(act, &operation).await?;
            if !matches!(polled.state(), Some("in progress" | "succeeded")) {
                return Err(unexpected("a poll of an acknowledged operation", &polled).into());
            }
            // A repeated update that has ended meanwhile would start a new one.
            if matches!(act, PlatformAction::Update(_)) {
                continue;
            }
            let again = self.send_action(act, RequestMode::Async).await?;
            match again.status {
                202 if again.operation() == Some(&operation) => {}
                200 | 410 => {
                    let polled = self.poll(act, &operation).await?;
                    if polled.state() != Some("succeeded") {
                        return Err(unexpected("a poll of a finished operation", &polled).into());
                    }
                }
                _ => return Err(unexpected("a repeated request", &again).into()),
            }
        }
        Ok(())
    }

    fn pending_acts(&self) -> Vec<PlatformAction> {
        let of = |known: &ExpectedState, binding: Option<&'static str>| {
            let verb = known.pending.as_ref()?.verb;
            let size = self.size;
            let acts = [
                PlatformAction::Provision,
                PlatformAction::Update(size),
                PlatformAction::Deprovision,
            ];
            let about =
                binding.map(|name| [PlatformAction::Bind(name), PlatformAction::Unbind(name)]);
            let mut all = acts.into_iter().chain(about.into_iter().flatten());
            all.find(|act| act.verb() == verb && act.binding() == binding)
        };
        let bindings = self
            .bindings
            .iter()
            .filter_map(|(name, known)| of(known, Some(name)));
        of(&self.known, None).into_iter().chain(bindings).collect()
    }
}

fn check_fetched(
    known: &ExpectedState,
    fetched: &HttpResponse,
    expected: ExpectedFetch,
) -> CheckResult<()> {
    let right = match (expected, fetched.status) {
        (ExpectedFetch::Exactly, 200) => {
            let content = match &fetched.body["credentials"] {
                serde_json::Value::Null => &fetched.body["parameters"],
                credentials => credentials,
            };
            known.settled == AcknowledgedState::There(content.clone())
        }
        (ExpectedFetch::Never, 404) => true,
        (ExpectedFetch::Whatever, 200 | 404 | 422) => true,
        _ => false,
    };
    if right {
        return Ok(());
    }
    Err(unexpected(&format!("a fetch of {known:?}"), fetched))
}
