//! Several users, by password and by hash: authentication, throttling and replacement.

use super::basic;
use crate::fixture::request::RequestBuilder;
use crate::fixture::{Fixture, on_each_store_with};
use async_trait::async_trait;
use bytes::Bytes;
use hyper::{Request, Response};
use std::sync::LazyLock;
use sutler_broker::{
    Auth, AuthConfigError, Broker, BuildError, Caller, Endpoint, Replacement, Users,
};
use sutler_broker::{AuthMethod, hash_password};

/// Slow to compute: once for all tests.
static HASH: LazyLock<String> =
    LazyLock::new(|| hash_password(&"by hash".into()).expect("a hash can be made"));

fn users() -> Auth {
    let users = Users::new()
        .with_password("plain", &"by:password".into())
        .and_then(|users| users.with_password("other", &"by:password".into()))
        .and_then(|users| users.with_hash("hashed", &HASH));
    Auth::users(users.expect("users")).expect("somebody may come in")
}

/// Answers with the authenticated caller.
struct WhoAmI;

#[async_trait]
impl Replacement for WhoAmI {
    async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let caller = request.extensions().get::<Caller>();
        let body = caller.map_or_else(
            || "nobody".to_owned(),
            |it| format!("\"{} by {}\"", it.name, it.via.word()),
        );
        Response::new(Bytes::from(body))
    }
}

fn set_up(broker: Broker) -> Broker {
    broker.auth(users()).replace(Endpoint::Catalog, WhoAmI)
}

fn as_user(kit: &Fixture, pair: &str) -> RequestBuilder {
    kit.catalog().header("Authorization", &basic(pair))
}

/// Holds: B-010.
#[tokio::test]
async fn each_user_authenticates_with_its_own_password_and_name() {
    on_each_store_with(set_up, async |kit| {
        for (pair, expected) in [
            ("plain:by:password", "plain by basic"),
            ("other:by:password", "other by basic"),
            ("hashed:by hash", "hashed by basic"),
            ("hashed:by hash", "hashed by basic"),
        ] {
            let reply = as_user(kit, pair).send().await.is(200);
            assert_eq!(reply.json, expected);
        }
        for pair in ["plain:by hash", "hashed:by:password", "nobody:by hash", ":"] {
            let reply = as_user(kit, pair).send().await.is(401);
            assert!(reply.header("WWW-Authenticate").starts_with("Basic "));
            assert!(!reply.description().contains("unknown"));
        }
    })
    .await;
}

/// Holds: B-010.
#[tokio::test]
async fn users_are_replaced_while_the_broker_runs() {
    on_each_store_with(set_up, async |kit| {
        as_user(kit, "hashed:by hash").send().await.is(200);
        let only = Users::new().with_password("hashed", &"new".into());
        let auth = kit.running.auth("/").expect("the only platform");
        auth.replace(&Auth::users(only.expect("a user")).expect("somebody"));
        as_user(kit, "hashed:by hash").send().await.is(401);
        as_user(kit, "plain:by:password").send().await.is(401);
        as_user(kit, "hashed:new").send().await.is(200);
    })
    .await;
}

#[tokio::test]
async fn wrong_passwords_are_delayed_and_verified_users_are_not() {
    on_each_store_with(set_up, async |kit| {
        as_user(kit, "hashed:by hash").send().await.is(200);
        for user in ["hashed", "nobody"] {
            let mut statuses = Vec::new();
            for n in 0..8 {
                let reply = as_user(kit, &format!("{user}:guess {n}")).send().await;
                statuses.push(reply.status);
                if reply.status == 429 {
                    assert_eq!(reply.header("Retry-After"), "1");
                    break;
                }
            }
            assert_eq!(statuses, [401, 401, 401, 401, 401, 401, 429], "{user}");
        }
        as_user(kit, "hashed:by hash").send().await.is(200);
        as_user(kit, "plain:by:password").send().await.is(200);
    })
    .await;
}

#[tokio::test]
async fn many_first_requests_of_one_user_at_once_are_all_accepted() {
    on_each_store_with(set_up, async |kit| {
        let requests = (0..200).map(|_| as_user(kit, "hashed:by hash").start());
        for reply in requests.collect::<Vec<_>>() {
            reply.await.expect("an answer").is(200);
        }
    })
    .await;
}

#[tokio::test]
async fn a_broker_with_an_invalid_user_does_not_start() {
    for (user, password) in [("", "p"), ("a:b", "p"), ("u", "")] {
        let broker = Broker::new(crate::fixture::catalog_of(
            crate::fixture::test_catalog::catalog(),
        ))
        .in_memory()
        .basic_auth(user, password);
        let message = match broker.start().await {
            Err(BuildError::Auth(fault)) => fault.to_string(),
            Err(error) => panic!("another fault: {error}"),
            Ok(_) => panic!("{user:?} may come in"),
        };
        assert!(
            message.contains("cannot be used") || message.contains("must have"),
            "{message}"
        );
    }
    let twice = Users::new()
        .with_password("u", &"p".into())
        .and_then(|users| users.with_hash("u", &HASH));
    assert_eq!(
        twice.err(),
        Some(AuthConfigError::DuplicateUser("u".to_owned()))
    );
}

#[test]
fn nothing_secret_is_printed() {
    let printed = format!("{:?}", users());
    assert!(printed.contains("hashed"), "{printed}");
    assert!(
        !printed.contains("password\"") && !printed.contains("argon2"),
        "{printed}"
    );
    assert_eq!(AuthMethod::Basic.word(), "basic");
}
