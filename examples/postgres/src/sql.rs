//! Every statement that changes the server. Pure: names and constants in, SQL out.
//!
//! Nothing here comes from a user: names are digests (`names.rs`), extensions an enum, limits numbers,
//! verifiers base64. Statements that may run twice are idempotent, because they are repeated after a crash. `server.rs` runs them.

use crate::names::Name;
use crate::parameters::{DatabaseSpec, Extension};
use std::fmt::Write as _;

/// Since this version a database can be dropped while others are connected to it.
const FORCE_SINCE: i32 = 130_000;

/// The role that owns the objects of a database. The broker becomes a member, so that it needs no superuser:
/// CREATEROLE and CREATEDB are enough.
pub(crate) fn create_owner(owner: &Name) -> String {
    format!("CREATE ROLE {owner} NOLOGIN; {}", let_us_in(owner))
}

pub(crate) fn let_us_in(role: &Name) -> String {
    format!("GRANT {role} TO CURRENT_USER")
}

/// No role can connect to the database before `close_to_others` has run. It is created from the pristine template,
/// because the default one may contain objects of others.
pub(crate) fn create_database(database: &Name) -> String {
    format!("CREATE DATABASE {database} TEMPLATE template0 ENCODING 'UTF8' ALLOW_CONNECTIONS false")
}

/// Allows only the owner to connect. The broker stays the owner of the database itself: otherwise the role could
/// lift its limits or drop it.
pub(crate) fn close_to_others(database: &Name) -> String {
    format!(
        "REVOKE ALL ON DATABASE {database} FROM PUBLIC; \
         GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {database} TO {database}; \
         ALTER DATABASE {database} ALLOW_CONNECTIONS true"
    )
}

/// Inside the database: grants the owner all rights.
pub(crate) fn hand_over(owner: &Name) -> String {
    format!("ALTER SCHEMA public OWNER TO {owner}")
}

/// Inside the database: applies the specification. Sent as one text it is one transaction.
pub(crate) fn apply_spec(database: &Name, was: &[Extension], spec: &DatabaseSpec) -> String {
    let mut sql = String::new();
    for extension in was.iter().filter(|it| !spec.extensions.contains(it)) {
        let _ = write!(sql, "DROP EXTENSION IF EXISTS {}; ", extension.name());
    }
    for extension in &spec.extensions {
        let name = extension.name();
        let _ = write!(sql, "CREATE EXTENSION IF NOT EXISTS {name} SCHEMA public; ");
    }
    let _ = write!(
        sql,
        "ALTER DATABASE {database} CONNECTION LIMIT {}; \
         ALTER DATABASE {database} SET statement_timeout TO '{}s'",
        spec.connections, spec.limits.statement_timeout_seconds
    );
    sql
}

/// Whether a login must be created or exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginState {
    New,
    Known,
}

/// The login of a binding. Its sessions act as the owner, so that all objects belong to all bindings and outlive
/// this one. One transaction.
pub(crate) fn make_login(kind: LoginState, login: &Name, owner: &Name, verifier: &str) -> String {
    let verb = match kind {
        LoginState::New => "CREATE",
        LoginState::Known => "ALTER",
    };
    format!(
        "{verb} ROLE {login} LOGIN PASSWORD '{verifier}'; \
         GRANT {owner} TO {login}; {}; \
         ALTER ROLE {login} IN DATABASE {owner} SET role TO {owner}",
        let_us_in(login)
    )
}

pub(crate) fn no_more_logins(login: &Name) -> String {
    format!("ALTER ROLE {login} NOLOGIN")
}

/// Inside a database: reassigns the objects of a role to its heir, and revokes its rights.
pub(crate) fn disown(role: &Name, heir: Option<&Name>) -> String {
    let inherit = heir.map(|heir| format!("REASSIGN OWNED BY {role} TO {heir}; "));
    format!("{}DROP OWNED BY {role}", inherit.unwrap_or_default())
}

pub(crate) fn drop_role(role: &Name) -> String {
    format!("DROP ROLE IF EXISTS {role}")
}

/// How a database is dropped while sessions may be connected to it. Separate statements, because they do not work
/// in a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DropMethod {
    /// The server ends the sessions.
    Forced(String),
    /// The broker does: it forbids connections, ends all sessions, then drops the database.
    ByHand { close: String, drop: String },
}

pub(crate) fn drop_database(database: &Name, server_version: i32) -> DropMethod {
    let drop = format!("DROP DATABASE IF EXISTS {database}");
    match server_version >= FORCE_SINCE {
        true => DropMethod::Forced(format!("{drop} WITH (FORCE)")),
        false => DropMethod::ByHand {
            close: format!("ALTER DATABASE {database} ALLOW_CONNECTIONS false"),
            drop,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{DropMethod, LoginState, apply_spec, drop_database, make_login};
    use crate::names::{Name, Prefix};
    use crate::parameters::{DatabaseSpec, Extension, Limits};

    fn database() -> Name {
        let prefix: Prefix = "t".parse().expect("a prefix");
        prefix.instance("one")
    }

    fn spec(extensions: &[Extension]) -> DatabaseSpec {
        DatabaseSpec {
            limits: Limits {
                connections: 5,
                statement_timeout_seconds: 10,
            },
            connections: 3,
            extensions: extensions.iter().copied().collect(),
        }
    }

    #[test]
    fn extensions_that_are_no_longer_wished_for_go_and_the_others_may_be_there_already() {
        let was = [Extension::Citext, Extension::Hstore];
        let sql = apply_spec(
            &database(),
            &was,
            &spec(&[Extension::Hstore, Extension::PgTrgm]),
        );
        assert!(sql.contains("DROP EXTENSION IF EXISTS citext"), "{sql}");
        assert!(!sql.contains("IF EXISTS hstore"), "{sql}");
        assert!(sql.contains("IF NOT EXISTS pg_trgm"), "{sql}");
        assert!(sql.contains("CONNECTION LIMIT 3"), "{sql}");
    }

    #[test]
    fn a_login_that_is_there_is_changed_and_not_made_again() {
        let name = database();
        let sql = |kind| make_login(kind, &name, &name, "SCRAM");
        assert!(sql(LoginState::New).starts_with("CREATE ROLE \"t_i"));
        assert!(sql(LoginState::Known).starts_with("ALTER ROLE \"t_i"));
    }

    #[test]
    fn a_server_before_thirteen_cannot_throw_others_out_by_itself() {
        let forced = drop_database(&database(), 130_000);
        assert!(matches!(forced, DropMethod::Forced(sql) if sql.ends_with("WITH (FORCE)")));
        let by_hand = drop_database(&database(), 120_022);
        assert!(matches!(by_hand, DropMethod::ByHand { drop, .. } if !drop.contains("FORCE")));
    }
}
