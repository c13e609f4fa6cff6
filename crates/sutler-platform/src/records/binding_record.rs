//! The document of a service binding: its index terms.

use super::record::TypedRecord;
use super::terms::{
    DUE_TERM, GONE_TERM, INSTANCE_TERM, NAME_TERM, ORPHAN_TERM, STATE_TERM, WAITS_FOR_ORPHAN,
    WAITS_TERM, moment_value, scoped_value,
};
use crate::lifecycle::binding::{Binding, BindingPhase};
use sutler_journal::{OperationId, StoreTime, Term};

impl BindingPhase {
    /// The phase as it is shown and listed.
    pub fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Binding => "binding",
            Self::Bound => "bound",
            Self::Deleting => "deleting",
            Self::Gone => "gone",
        }
    }
}

impl TypedRecord for Binding {
    fn terms(&self) -> Vec<Term> {
        let state = scoped_value(&self.namespace, self.phase().word());
        let mut terms = vec![Term::new(STATE_TERM, state)];
        if self.tombstone.is_some() {
            return terms;
        }
        let instance = self.instance.to_string().into_bytes();
        if self.pending.iter().any(|it| it.waits_for_instance) {
            terms.push(Term::new(WAITS_TERM, instance.clone()));
        }
        terms.push(Term::new(INSTANCE_TERM, instance));
        let name = scoped_value(&self.namespace, &self.name);
        terms.push(Term::new(NAME_TERM, name));
        if self.waits_for_orphan {
            terms.push(Term::new(ORPHAN_TERM, WAITS_FOR_ORPHAN));
        }
        if let Some(due) = self.due() {
            terms.push(Term::new(DUE_TERM, moment_value(due.as_microsecond())));
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
