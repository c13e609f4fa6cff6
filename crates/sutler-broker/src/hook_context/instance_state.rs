//! Reads and changes of the instance's state by a hook.
//!
//! Hooks of several bindings may change the state of their instance at the same time, so a change is a function of
//! the current state.

use super::Cx;
use crate::error::{Error, Result};
use crate::lifecycle::AuthorState;
use crate::lifecycle::instance::Instance;
use crate::resources::{ResourceKeys as _, SaveResult};
use sutler_journal::{Commit, CommitRejectedError, Lost};
use sutler_osb::{Context, Parameters};

impl Cx {
    /// The parameters of the instance: before the change, where the operation is an update.
    pub fn instance_parameters(&self) -> &Parameters {
        &self.input.instance.parameters
    }

    /// Platform context of the instance, also in an operation of a binding.
    pub fn instance_context(&self) -> Option<&Context> {
        self.input.instance.context.as_ref()
    }

    /// The stored state of the instance now; a provision gets the state that an earlier, failed one saved.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn instance_state(&self) -> Result<Option<AuthorState>> {
        let key = self.records.instance_key(&self.input.instance_id);
        let loaded = self.records.load_for_run::<Instance>(&self.run, &key).await;
        let at = loaded.map_err(|Lost| Error::lost())?;
        Ok(at
            .state
            .data()
            .and_then(|instance_data| instance_data.state.clone()))
    }

    /// Changes the instance's state from the hook of a binding: `change` computes the next state from the current
    /// one, and is called again if another writer was first. `None` leaves the state unchanged.
    ///
    /// # Errors
    /// Those of `change`; the state is too large; or the claim was lost.
    pub async fn change_instance_state(
        &self,
        change: impl Fn(Option<&AuthorState>) -> Result<Option<AuthorState>> + Send,
    ) -> Result<()> {
        let key = self.records.instance_key(&self.input.instance_id);
        loop {
            let loaded = self.records.load_for_run::<Instance>(&self.run, &key).await;
            let was = loaded.map_err(|Lost| Error::lost())?;
            let Some(instance_data) = was.state.data() else {
                return Ok(());
            };
            let Some(next) = change(instance_data.state.as_ref())? else {
                return Ok(());
            };
            let next = was.state.clone().with_state(next);
            let commit = self.records.put(Commit::new(), &key, &was, &next);
            match self
                .run
                .commit(commit)
                .await
                .map_err(|Lost| Error::lost())?
            {
                Ok(()) => return Ok(()),
                Err(CommitRejectedError::Stale(_)) => {}
                Err(CommitRejectedError::TooLarge(_)) => {
                    return Err(SaveResult::TooLarge.into_error());
                }
            }
        }
    }
}
