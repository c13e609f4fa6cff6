//! TLS to the server, by parameters of the URL.

use super::cluster;
use crate::fixture::insert;
use secrecy::SecretString;
use sqlx::Executor as _;
use sutler_journal::Store as _;
use sutler_servers::{Demands, ServerUrl, Tls, mariadb};
use sutler_store_sql::{MySqlStore, SqlOpenError};

fn url(place: &ServerUrl, query: &str) -> SecretString {
    let mut place = place.clone();
    query.clone_into(&mut place.query);
    place.url().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_certificate_is_verified_and_tls_is_required() {
    let demands = Demands {
        tls: Tls::Server,
        ..Demands::default()
    };
    let Some(server) = mariadb::own(demands) else {
        return;
    };
    let place = server.fresh_database();
    let only_tls = "SET GLOBAL require_secure_transport = ON";
    let mut db = cluster::connect(&server).await;
    db.execute(only_tls).await.expect("TLS only");

    let trusted = &server.certificates().authority;
    for mode in ["VERIFY_CA", "VERIFY_IDENTITY"] {
        let query = format!("ssl-mode={mode}&ssl-ca={trusted}");
        let store = MySqlStore::open(&url(&place, &query)).await;
        let store = store.expect("a store");
        store.commit(&insert(mode)).await.expect("a commit");
    }

    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
    let other = other.expect("a certificate").cert.pem();
    let elsewhere = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(elsewhere.path(), other).expect("it is written");
    let wrong = elsewhere.path().display();
    let authority = "names the authority";
    for (query, todo) in [
        (format!("ssl-mode=VERIFY_CA&ssl-ca={wrong}"), authority),
        (
            format!("ssl-mode=VERIFY_IDENTITY&ssl-ca={wrong}"),
            authority,
        ),
        ("ssl-mode=DISABLED".to_owned(), "wants TLS"),
    ] {
        let refused = MySqlStore::open(&url(&place, &query)).await;
        let error = refused.expect_err("a stranger, or in plain");
        assert!(
            matches!(error, SqlOpenError::Unreachable { .. }),
            "{error:?}"
        );
        let message = error.to_string();
        assert!(message.contains(todo), "{query}: {message}");
        assert!(!message.contains(sutler_servers::PASSWORD), "{query}");
    }
}
