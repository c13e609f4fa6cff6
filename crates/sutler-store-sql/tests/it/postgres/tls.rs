//! TLS to the server, by parameters of the URL.

use super::cluster::Cluster;
use crate::scene::insert;
use crate::server::Home;
use secrecy::SecretString;
use sqlx::{Executor as _, Row as _};
use sutler_journal::Store as _;
use sutler_store_sql::{OpenError, PostgresStore};

/// A certificate for this machine that vouches for itself.
fn with_certificate(home: &Home) -> Vec<String> {
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let certificate = home.private("server.pem", &made.cert.pem());
    let key = home.private("server.key", &made.signing_key.serialize_pem());
    let settings = [
        "ssl=on".to_owned(),
        format!("ssl_cert_file={certificate}"),
        format!("ssl_key_file={key}"),
    ];
    let flagged = settings.map(|setting| ["-c".to_owned(), setting]);
    flagged.into_iter().flatten().collect()
}

fn url(cluster: &Cluster, certificate: &str) -> SecretString {
    let port = cluster.address().port();
    let tls = format!("sslmode=verify-full&sslrootcert={certificate}");
    format!("postgres://postgres@127.0.0.1:{port}/postgres?{tls}").into()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_held_to_its_certificate() {
    let Some(cluster) = Cluster::own_with(with_certificate).await else {
        return;
    };
    let folder = cluster.folder();
    let trusted = folder.join("server.pem").display().to_string();
    let store = PostgresStore::open(&url(&cluster, &trusted)).await;
    let store = store.expect("a store");
    store.commit(&insert("a")).await.expect("a commit");
    let count = "SELECT count(*) FILTER (WHERE s.ssl), count(*) FILTER (WHERE NOT s.ssl)
        FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
        WHERE a.application_name = 'sutler'";
    let row = cluster.connect().await.fetch_one(count).await;
    let row = row.expect("counts");
    let (sealed, open): (i64, i64) = (row.get(0), row.get(1));
    assert!(sealed > 0 && open == 0, "{sealed} by TLS, {open} without");

    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
    let other = other.expect("a certificate").cert.pem();
    let elsewhere = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(elsewhere.path(), other).expect("it is written");
    let wrong = elsewhere.path().display().to_string();
    let refused = PostgresStore::open(&url(&cluster, &wrong)).await;
    let error = refused.expect_err("a stranger's certificate");
    assert!(matches!(error, OpenError::Unreachable { .. }), "{error:?}");
}
