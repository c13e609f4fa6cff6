//! Every statement that changes the server. Pure: names and constants in, SQL out.
//!
//! Nothing here comes from a user: names are digests (`names.rs`), extensions an enum, limits numbers,
//! verifiers base64. What may run twice says so, because after a crash it will. `server.rs` runs them.

use crate::names::Name;
use crate::wishes::{Extension, Wishes};
use std::fmt::Write as _;

/// Since this version a database can be dropped while others are connected to it.
const FORCE_SINCE: i32 = 130_000;

/// The role that owns what is in a database. The broker becomes a member, so that it needs no
/// superuser: CREATEROLE and CREATEDB are enough.
pub(crate) fn create_owner(owner: &Name) -> String {
    format!("CREATE ROLE {owner} NOLOGIN; {}", let_us_in(owner))
}

pub(crate) fn let_us_in(role: &Name) -> String {
    format!("GRANT {role} TO CURRENT_USER")
}

/// Nobody can connect to it before `close_to_others` has run. From the pristine template: what others
/// put into the default one is not for every user.
pub(crate) fn create_database(database: &Name) -> String {
    format!("CREATE DATABASE {database} TEMPLATE template0 ENCODING 'UTF8' ALLOW_CONNECTIONS false")
}

/// Lets the owner in, and nobody else. The database itself stays the broker's: its owner could lift
/// its limits or drop it.
pub(crate) fn close_to_others(database: &Name) -> String {
    format!(
        "REVOKE ALL ON DATABASE {database} FROM PUBLIC; \
         GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {database} TO {database}; \
         ALTER DATABASE {database} ALLOW_CONNECTIONS true"
    )
}

/// Inside the database: the owner may do there what it likes.
pub(crate) fn hand_over(owner: &Name) -> String {
    format!("ALTER SCHEMA public OWNER TO {owner}")
}

/// Inside the database: makes it what it is to be. Sent as one text it is one transaction.
pub(crate) fn settle(database: &Name, was: &[Extension], wishes: &Wishes) -> String {
    let mut sql = String::new();
    for extension in was.iter().filter(|it| !wishes.extensions.contains(it)) {
        let _ = write!(sql, "DROP EXTENSION IF EXISTS {}; ", extension.name());
    }
    for extension in &wishes.extensions {
        let name = extension.name();
        let _ = write!(sql, "CREATE EXTENSION IF NOT EXISTS {name} SCHEMA public; ");
    }
    let _ = write!(
        sql,
        "ALTER DATABASE {database} CONNECTION LIMIT {}; \
         ALTER DATABASE {database} SET statement_timeout TO '{}s'",
        wishes.connections, wishes.limits.statement_timeout_seconds
    );
    sql
}

/// Whether a login is to be made or is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    New,
    Known,
}

/// A binding's login. Its sessions act as the owner, so that whatever they make belongs to all
/// bindings and outlives this one. One transaction.
pub(crate) fn make_login(kind: Login, login: &Name, owner: &Name, verifier: &str) -> String {
    let verb = match kind {
        Login::New => "CREATE",
        Login::Known => "ALTER",
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

/// Inside a database: gives what a role has to its heir, and takes its rights away.
pub(crate) fn disown(role: &Name, heir: Option<&Name>) -> String {
    let inherit = heir.map(|heir| format!("REASSIGN OWNED BY {role} TO {heir}; "));
    format!("{}DROP OWNED BY {role}", inherit.unwrap_or_default())
}

pub(crate) fn drop_role(role: &Name) -> String {
    format!("DROP ROLE IF EXISTS {role}")
}

/// How a database is dropped although somebody may be connected to it. Statements of their own: none
/// of the last ones works in a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Drop {
    /// The server throws them out.
    Forced(String),
    /// The broker does: nobody comes in any more, all are thrown out, then it is dropped.
    ByHand { close: String, drop: String },
}

pub(crate) fn drop_database(database: &Name, server_version: i32) -> Drop {
    let drop = format!("DROP DATABASE IF EXISTS {database}");
    match server_version >= FORCE_SINCE {
        true => Drop::Forced(format!("{drop} WITH (FORCE)")),
        false => Drop::ByHand {
            close: format!("ALTER DATABASE {database} ALLOW_CONNECTIONS false"),
            drop,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{Drop, Login, drop_database, make_login, settle};
    use crate::names::{Name, Prefix};
    use crate::wishes::{Extension, Limits, Wishes};

    fn database() -> Name {
        let prefix: Prefix = "t".parse().expect("a prefix");
        prefix.instance("one")
    }

    fn wishes(extensions: &[Extension]) -> Wishes {
        Wishes {
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
        let sql = settle(
            &database(),
            &was,
            &wishes(&[Extension::Hstore, Extension::PgTrgm]),
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
        assert!(sql(Login::New).starts_with("CREATE ROLE \"t_i"));
        assert!(sql(Login::Known).starts_with("ALTER ROLE \"t_i"));
    }

    #[test]
    fn a_server_before_thirteen_cannot_throw_others_out_by_itself() {
        let forced = drop_database(&database(), 130_000);
        assert!(matches!(forced, Drop::Forced(sql) if sql.ends_with("WITH (FORCE)")));
        let by_hand = drop_database(&database(), 120_022);
        assert!(matches!(by_hand, Drop::ByHand { drop, .. } if !drop.contains("FORCE")));
    }
}
