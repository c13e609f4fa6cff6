//! What a hook can learn and change of the instance's own state beyond what it was handed.
//!
//! A binding's hook may have something to add to the state of its instance, while others of the same
//! instance do too: so it is a change, made on what is there at that moment.

use super::Cx;
use crate::error::{Error, Result};
use crate::lifecycle::AuthorState;
use crate::lifecycle::instance::Instance;
use crate::resources::{ResourceKeys as _, SaveResult};
use sutler_journal::{Commit, CommitRejected, Lost};
use sutler_osb::{Context, Parameters};

impl Cx {
    /// The parameters of the instance: before the change, where the operation is an update.
    pub fn instance_parameters(&self) -> &Parameters {
        &self.facts.instance_parameters
    }

    /// Where in the platform the instance lives, also where the operation is about a binding.
    pub fn instance_context(&self) -> Option<&Context> {
        self.facts.instance_context.as_ref()
    }

    /// The instance's state as it is kept at this moment; a provision sees what an earlier one that
    /// failed has saved.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn instance_state(&self) -> Result<Option<AuthorState>> {
        let key = self.records.instance_key(&self.facts.instance_id);
        let loaded = self.records.load_for_run::<Instance>(&self.run, &key).await;
        let at = loaded.map_err(|Lost| Error::lost())?;
        Ok(at
            .state
            .data()
            .and_then(|instance_data| instance_data.state.clone()))
    }

    /// Changes the instance's state from the hook of a binding: `change` makes the next state of the
    /// one that is there, and may be called again if somebody else was quicker. `None`: leave it.
    ///
    /// # Errors
    /// Those of `change`; the state is too large; or the claim was lost.
    pub async fn change_instance_state(
        &self,
        change: impl Fn(Option<&AuthorState>) -> Result<Option<AuthorState>> + Send,
    ) -> Result<()> {
        let key = self.records.instance_key(&self.facts.instance_id);
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
                Err(CommitRejected::Stale(_)) => {}
                Err(CommitRejected::TooLarge(_)) => return Err(SaveResult::TooLarge.into_error()),
            }
        }
    }
}
