//! The person behind an intent: who asked for a change, and for whom.
//!
//! Uids are unique among all ways to authenticate: a user of the configuration, the bearers of two issuers and the people
//! of a front end never share one, whatever names and subjects they have. Not here: how an author is named to a broker
//! (`broker_request/originating_identity.rs`), and who may do what (`api/access.rs`).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use sutler_server::{AuthMethod, Caller};

/// The author of an intent, as the caller was authenticated when the intent was accepted. Never changed afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Author {
    /// Name for people; not an identity.
    pub username: String,
    /// Stable id, unique among all authors.
    pub uid: String,
    /// Groups, sorted.
    pub groups: Vec<String>,
    /// Other attributes, e.g. scopes.
    pub extra: BTreeMap<String, Vec<String>>,
    /// Uid of the front end that acted for this author, if any.
    pub impersonated_by: Option<String>,
}

/// A person for whom a front end acts, as it names that person.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepresentedPerson {
    /// Name for people.
    pub username: String,
    /// Stable id, unique at the front end.
    pub uid: String,
    /// Groups.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Other attributes.
    #[serde(default)]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Author {
    /// Whether two intents come from one person with the same rights, so that one request can carry both.
    pub fn is_same_person(&self, other: &Self) -> bool {
        self.uid == other.uid && self.groups == other.groups
    }

    /// The author that an authenticated caller is.
    #[must_use]
    pub fn of_caller(caller: &Caller) -> Self {
        Self {
            username: caller.name.to_string(),
            uid: uid_of(caller),
            groups: sorted(caller.groups.to_vec()),
            extra: BTreeMap::new(),
            impersonated_by: None,
        }
    }

    /// A person for whom this author acts. The uid says whose person it is: two front ends may use the same ids.
    #[must_use]
    pub fn acting_for(&self, person: RepresentedPerson) -> Self {
        Self {
            username: person.username,
            uid: qualified("behalf", &self.uid, &person.uid),
            groups: sorted(person.groups),
            extra: person.extra,
            impersonated_by: Some(self.uid.clone()),
        }
    }
}

fn uid_of(caller: &Caller) -> String {
    let name = &caller.name;
    match caller.via {
        AuthMethod::Open => "anonymous".to_owned(),
        AuthMethod::Basic => format!("user:{name}"),
        AuthMethod::Certificate => format!("certificate:{name}"),
        AuthMethod::Bearer => {
            let issuer = caller.claims.get("iss").and_then(|it| it.as_str());
            let issuer = issuer.unwrap_or_default();
            match &caller.uid {
                Some(subject) => qualified("token", issuer, subject),
                // A token without a subject: its name is one of another claim, which may be the subject of another bearer.
                None => qualified("token-name", issuer, name),
            }
        }
    }
}

/// `kind:source#id`, from which all three parts can be read: the source has no `#`.
fn qualified(kind: &str, source: &str, id: &str) -> String {
    let source = source.replace('%', "%25").replace('#', "%23");
    format!("{kind}:{source}#{id}")
}

fn sorted(mut groups: Vec<String>) -> Vec<String> {
    groups.sort_unstable();
    groups.dedup();
    groups
}

#[cfg(test)]
mod tests {
    use super::{Author, RepresentedPerson};
    use serde_json::json;
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;
    use sutler_server::{AuthMethod, Caller};

    fn bearer(issuer: &str, subject: Option<&str>, name: &str) -> Caller {
        let claims = json!({ "iss": issuer });
        Caller {
            uid: subject.map(Into::into),
            groups: vec!["b".to_owned(), "a".to_owned(), "b".to_owned()].into(),
            claims: Arc::new(claims.as_object().expect("an object").clone()),
            ..Caller::new(name, AuthMethod::Bearer)
        }
    }

    fn person(uid: &str) -> RepresentedPerson {
        RepresentedPerson {
            username: "p".to_owned(),
            uid: uid.to_owned(),
            groups: Vec::new(),
            extra: BTreeMap::new(),
        }
    }

    #[test]
    fn no_two_people_have_the_same_uid() {
        let callers = [
            Caller::anonymous(),
            Caller::new("x", AuthMethod::Basic),
            Caller::new("x", AuthMethod::Certificate),
            // A user whose name reads like the id of a token.
            Caller::new("https://i#x", AuthMethod::Basic),
            bearer("https://i", Some("x"), "x"),
            bearer("https://i", None, "x"),
            bearer("https://i", Some("y"), "x"),
            bearer("https://j", Some("x"), "x"),
            // The place of the `#` decides whose subject it is.
            bearer("https://i#a", Some("x"), "x"),
            bearer("https://i", Some("a#x"), "x"),
            bearer("https://i%23a", Some("x"), "x"),
        ];
        let authors: Vec<Author> = callers.iter().map(Author::of_caller).collect();
        let people = ["x", "#x"].map(person);
        let represented = authors.iter().flat_map(|it| {
            people
                .iter()
                .map(move |person| it.acting_for(person.clone()))
        });
        let uids: Vec<String> = authors
            .iter()
            .cloned()
            .chain(represented)
            .map(|it| it.uid)
            .collect();
        let different: BTreeSet<&String> = uids.iter().collect();
        assert_eq!(different.len(), uids.len(), "{uids:#?}");
    }

    #[test]
    fn an_author_is_readable_in_what_brokers_and_journals_show() {
        let author = Author::of_caller(&bearer("https://issuer", Some("42"), "ada@example"));
        assert_eq!(author.username, "ada@example");
        assert_eq!(author.uid, "token:https://issuer#42");
        assert_eq!(author.groups, ["a", "b"]);
        let front_end = Author::of_caller(&Caller::new("kube", AuthMethod::Basic));
        let person = front_end.acting_for(person("u-1"));
        assert_eq!(person.uid, "behalf:user:kube#u-1");
        assert_eq!(person.impersonated_by.as_deref(), Some("user:kube"));
    }
}
