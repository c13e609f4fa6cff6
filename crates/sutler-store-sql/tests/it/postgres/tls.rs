//! TLS to the server, by parameters of the URL.

use super::cluster;
use crate::fixture::insert;
use secrecy::SecretString;
use sqlx::{Executor as _, Row as _};
use sutler_journal::Store as _;
use sutler_servers::{Demands, Server, Tls, postgres};
use sutler_store_sql::{PostgresStore, SqlOpenError};

fn url(server: &Server, authority: &str) -> SecretString {
    let mut place = server.admin_url().clone();
    place.query = format!("sslmode=verify-full&sslrootcert={authority}");
    place.url().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_held_to_its_certificate() {
    let demands = Demands {
        tls: Tls::Server,
        ..Demands::default()
    };
    let Some(server) = postgres::own(demands) else {
        return;
    };
    let trusted = &server.certificates().authority;
    let store = PostgresStore::open(&url(&server, trusted)).await;
    let store = store.expect("a store");
    store.commit(&insert("a")).await.expect("a commit");
    let count = "SELECT count(*) FILTER (WHERE s.ssl), count(*) FILTER (WHERE NOT s.ssl)
        FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
        WHERE a.application_name = 'sutler'";
    let row = cluster::connect(&server).await.fetch_one(count).await;
    let row = row.expect("counts");
    let (sealed, open): (i64, i64) = (row.get(0), row.get(1));
    assert!(sealed > 0 && open == 0, "{sealed} by TLS, {open} without");

    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
    let other = other.expect("a certificate").cert.pem();
    let elsewhere = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(elsewhere.path(), other).expect("it is written");
    let wrong = elsewhere.path().display().to_string();
    let refused = PostgresStore::open(&url(&server, &wrong)).await;
    let error = refused.expect_err("a stranger's certificate");
    assert!(
        matches!(error, SqlOpenError::Unreachable { .. }),
        "{error:?}"
    );
    let message = error.to_string();
    assert!(message.contains("names the authority"), "{message}");
}
