//! What a request needs permission for, and who has it.
//!
//! Every route names its [`Permission`] in `route_table.rs`, and [`AccessSettings::allows`] is the only place that
//! decides. Today every authenticated author may read and change instances, bindings and secrets of every namespace; the
//! configuration grants all else by name. Roles and grants of a namespace will be decided here too. Authentication is the
//! server's (`sutler_server::Auth`).

use crate::author::Author;

/// What a request needs permission for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Permission {
    /// Nothing: anybody may ask, without credentials.
    Public,
    /// Reading, except credentials.
    Read,
    /// Changing instances and bindings, and one's own intents.
    Change,
    /// Writing secrets.
    SecretWrite,
    /// Reading credentials of bindings.
    Credentials,
    /// Cancelling, resuming and retrying intents of others.
    IntentManage,
    /// Giving up what a broker may still have.
    Abandon,
    /// Creating and deleting namespaces.
    NamespaceManage,
    /// Registering and operating brokers, and adopting their instances.
    BrokerManage,
    /// Operating the orphan ledger.
    OrphanManage,
}

impl Permission {
    /// The permission as refusals and the description of the API name it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Read => "read",
            Self::Change => "change",
            Self::SecretWrite => "secret.write",
            Self::Credentials => "credentials",
            Self::IntentManage => "intent.manage",
            Self::Abandon => "abandon",
            Self::NamespaceManage => "namespace.manage",
            Self::BrokerManage => "broker.manage",
            Self::OrphanManage => "orphan.manage",
        }
    }
}

/// What the configuration grants by name. An entry is the name of a user of the configuration, or the whole uid of any
/// other author, e.g. `token:https://issuer#42`: the name in a token is chosen by its issuer and grants nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessSettings {
    /// Who may manage brokers, namespaces, orphans and the intents of others.
    pub operators: Vec<String>,
    /// Who may give up what a broker may still have.
    pub abandon: Vec<String>,
    /// Who may read credentials.
    pub credentials: Vec<String>,
    /// Front ends that may act for others.
    pub impersonators: Vec<String>,
}

impl AccessSettings {
    /// Whether an author has a permission.
    pub(crate) fn allows(&self, author: &Author, permission: Permission) -> bool {
        match permission {
            Permission::Abandon => is_listed(&self.abandon, author),
            Permission::Credentials => is_listed(&self.credentials, author),
            Permission::IntentManage
            | Permission::NamespaceManage
            | Permission::BrokerManage
            | Permission::OrphanManage => is_listed(&self.operators, author),
            Permission::Public
            | Permission::Read
            | Permission::Change
            | Permission::SecretWrite => true,
        }
    }

    /// Whether a caller may act for others. An impersonated caller may not.
    pub(crate) fn may_impersonate(&self, caller: &Author) -> bool {
        caller.impersonated_by.is_none() && is_listed(&self.impersonators, caller)
    }
}

fn is_listed(entries: &[String], author: &Author) -> bool {
    let user = author.uid.strip_prefix("user:");
    entries
        .iter()
        .any(|entry| *entry == author.uid || user == Some(entry))
}

#[cfg(test)]
mod tests {
    use super::{AccessSettings, Permission};
    use crate::author::{Author, RepresentedPerson};
    use serde_json::json;
    use std::sync::Arc;
    use sutler_server::{AuthMethod, Caller};

    fn user(name: &str) -> Author {
        Author::of_caller(&Caller::new(name, AuthMethod::Basic))
    }

    fn bearer(name: &str) -> Author {
        let claims = json!({ "iss": "https://i" });
        Author::of_caller(&Caller {
            uid: Some(name.into()),
            claims: Arc::new(claims.as_object().expect("an object").clone()),
            ..Caller::new(name, AuthMethod::Bearer)
        })
    }

    fn listed(names: &[&str]) -> AccessSettings {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        AccessSettings {
            operators: names.clone(),
            abandon: names.clone(),
            credentials: names.clone(),
            impersonators: names,
        }
    }

    #[test]
    fn what_concerns_others_is_granted_by_name_only() {
        let nobody = AccessSettings::default();
        let access = listed(&["ada"]);
        for permission in [
            Permission::Credentials,
            Permission::Abandon,
            Permission::IntentManage,
            Permission::NamespaceManage,
            Permission::BrokerManage,
            Permission::OrphanManage,
        ] {
            assert!(!nobody.allows(&user("ada"), permission));
            assert!(access.allows(&user("ada"), permission));
            assert!(!access.allows(&user("bob"), permission));
        }
        assert!(nobody.allows(&user("ada"), Permission::Change));
    }

    #[test]
    fn a_name_in_a_token_is_not_the_name_of_a_user() {
        let access = listed(&["ada", "token:https://i#eve"]);
        assert!(!access.allows(&bearer("ada"), Permission::Abandon));
        assert!(access.allows(&bearer("eve"), Permission::Abandon));
        assert!(!access.may_impersonate(&bearer("ada")));
    }

    #[test]
    fn nobody_has_the_grants_of_the_front_end_that_acts_for_them() {
        let access = listed(&["kube"]);
        let front_end = user("kube");
        assert!(access.may_impersonate(&front_end));
        let person = RepresentedPerson {
            username: "kube".to_owned(),
            uid: "kube".to_owned(),
            groups: Vec::new(),
            extra: Default::default(),
        };
        let person = front_end.acting_for(person);
        assert!(!access.may_impersonate(&person));
        assert!(!access.allows(&person, Permission::Credentials));
        let granted = listed(&["behalf:user:kube#kube"]);
        assert!(granted.allows(&person, Permission::Credentials));
        assert!(!granted.may_impersonate(&person));
    }
}
