//! Access: TLS with certificates on both sides, users and passwords.

use crate::conformance::open;
use crate::fixture::{insert, key, until};
use crate::server::settings_of;
use secrecy::SecretString;
use std::path::PathBuf;
use sutler_journal::Store;
use sutler_servers::{Demands, PASSWORD, etcd};
use sutler_store_etcd::{EtcdOpenError, EtcdSettings, EtcdStore, Login, Tls};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_demands_certificates_is_reached_with_one() {
    let demands = Demands {
        tls: sutler_servers::Tls::Both,
        ..Demands::default()
    };
    let Some(server) = etcd::own(demands) else {
        return;
    };
    let files = server.certificates();
    let authority = PathBuf::from(&files.authority);
    let mut settings = settings_of(&server);
    settings.tls = Some(Tls {
        ca: Some(authority.clone()),
        identity: Some(((&files.certificate).into(), (&files.key).into())),
    });
    until("etcd takes connections", || async {
        EtcdStore::open_with(&settings).await.is_ok()
    })
    .await;
    let store = open(&settings).await;
    store.commit(&insert("a", 1)).await.expect("a commit");
    assert!(store.get(&key("a")).await.expect("a read").is_some());

    settings.tls = Some(Tls {
        ca: Some(authority),
        identity: None,
    });
    let refused = EtcdStore::open_with(&settings).await;
    assert!(matches!(refused, Err(EtcdOpenError::Unavailable(_))));
    settings.tls = Some(Tls::default());
    let unknown = EtcdStore::open_with(&settings).await;
    assert!(matches!(unknown, Err(EtcdOpenError::Unavailable(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_let_in_by_password_and_again_when_the_token_is_old() {
    let demands = Demands {
        arguments: ["--auth-token-ttl", "2"].map(str::to_owned).into(),
        ..Demands::default()
    };
    let Some(server) = etcd::own(demands) else {
        return;
    };
    let settings = settings_of(&server);
    let url = etcd::demand_passwords(&server, "me", "mine").url();
    let store = EtcdStore::open(&SecretString::from(url)).await;
    let store = store.expect("the password is right");
    let worker = crate::fixture::worker(&store).await;
    store.commit(&insert("a", 1)).await.expect("a commit");
    store.release(worker).await.expect("leases work too");
    let began = std::time::Instant::now();
    until("the token is old", || async {
        began.elapsed() > std::time::Duration::from_secs(4)
    })
    .await;
    store.commit(&insert("b", 1)).await.expect("let in again");

    for (user, password) in [("me", "wrong"), ("nobody", PASSWORD), ("me", PASSWORD)] {
        let login = Login {
            user: user.to_owned(),
            password: password.to_owned().into(),
        };
        let settings = EtcdSettings {
            login: Some(login),
            prefix: "not-mine".to_owned(),
            ..settings.clone()
        };
        let refused = EtcdStore::open_with(&settings).await.expect_err("refused");
        let message = format!("{refused} {refused:?} {settings:?}");
        assert!(message.contains("check name, password"), "{message}");
        assert!(
            !message.contains(PASSWORD) && !message.contains("wrong"),
            "{message}"
        );
    }
    let nobody = EtcdStore::open_with(&settings).await;
    assert!(
        matches!(nobody, Err(EtcdOpenError::Unavailable(_))),
        "no name at all"
    );
}
