//! The document of a service instance: its index terms.

use super::record::TypedRecord;
use super::terms::{
    BROKER_TERM, GONE_TERM, NAME_TERM, ORPHAN_TERM, PLAN_TERM, SOURCE_TERM, STATE_TERM,
    WAITS_FOR_ORPHAN, moment_value, scoped_value,
};
use crate::lifecycle::instance::{Instance, InstancePhase};
use sutler_journal::{OperationId, StoreTime, Term};

impl InstancePhase {
    /// The phase as it is shown and listed.
    pub fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Provisioning => "provisioning",
            Self::Live => "live",
            Self::Deleting => "deleting",
            Self::Gone => "gone",
        }
    }
}

impl TypedRecord for Instance {
    fn terms(&self) -> Vec<Term> {
        let spec = self.basis.spec();
        let state = scoped_value(&self.namespace, self.phase().word());
        let broker = self.broker.to_string();
        let mut terms = vec![
            Term::new(STATE_TERM, state),
            Term::new(BROKER_TERM, broker.into_bytes()),
        ];
        if self.tombstone.is_some() {
            return terms;
        }
        let name = scoped_value(&self.namespace, &spec.name);
        // Ids may be 512 bytes long each; a term may not.
        let mut plan = scoped_value(self.service.as_str(), spec.plan.as_str());
        plan.truncate(512);
        terms.push(Term::new(NAME_TERM, name));
        terms.push(Term::new(PLAN_TERM, plan));
        if self.waits_for_orphan {
            terms.push(Term::new(ORPHAN_TERM, WAITS_FOR_ORPHAN));
        }
        if let Some(source) = &self.source {
            let mut object = source.object.clone().into_bytes();
            object.truncate(512);
            terms.push(Term::new(SOURCE_TERM, object));
        }
        terms
    }

    fn dated_terms(&self, written: StoreTime) -> Vec<Term> {
        let gone = self.tombstone.as_ref();
        let term = gone.map(|_| Term::new(GONE_TERM, moment_value(written.0)));
        term.into_iter().collect()
    }

    /// Those of pending intents. Ended ones are unpinned when they end.
    fn referenced_operations(&self) -> Vec<OperationId> {
        let pending = self.pending.iter();
        pending.map(|it| OperationId(it.operation.0)).collect()
    }
}
