//! The baselines: the minimal work of any broker on hyper and SQLite.

use crate::broker::{CATALOG_BYTES, catalog_bytes};
use crate::load::BoxError;
use crate::subject::{PASSWORD, Subject, USER};
use base64::Engine as _;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use sutler_journal::{
    Commit, Fence, Key, Kind, NewOperation, Next, OperationId, Outcome, Queue, Realm, Start, Store,
    Term, Version, WorkerId,
};
use sutler_store_sqlite::SqliteStore;
use tokio::net::TcpListener;

type ServeResult = Result<(), BoxError>;

/// Hyper and fixed bytes.
pub(crate) async fn bare(subject: Subject, port: u16) -> ServeResult {
    let (status, body) = match subject {
        Subject::BareCatalog => (StatusCode::OK, catalog_bytes()),
        Subject::BarePoll => (
            StatusCode::OK,
            Bytes::from_static(b"{\"state\":\"succeeded\"}"),
        ),
        _ => (StatusCode::CREATED, Bytes::from_static(b"{}")),
    };
    listen(port, move |request: Request<Incoming>| {
        let body = body.clone();
        async move {
            if request.method() == hyper::Method::PUT {
                let _ = request.into_body().collect().await;
            }
            answer(status, body)
        }
    })
    .await
}

thread_local! {
    static READER: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

/// The statement of the store's `poll`.
const SELECT: &str = "SELECT state, verb, lane_key, detail FROM op WHERE id = ?1";

/// Hyper, the same authentication, the same SELECT on the same file.
pub(crate) async fn skeleton_poll(port: u16, dir: &Path) -> ServeResult {
    let path = Arc::new(dir.join("broker.db"));
    listen(port, move |request: Request<Incoming>| {
        let path = path.clone();
        async move {
            if !admitted(&request) {
                return answer(StatusCode::UNAUTHORIZED, Bytes::new());
            }
            let query = request.uri().query().unwrap_or_default();
            let Ok(id) = query.trim_start_matches("operation=").parse::<uuid::Uuid>() else {
                return answer(StatusCode::OK, Bytes::new());
            };
            let found = READER.with_borrow_mut(|reader| {
                let db = reader.get_or_insert_with(|| Connection::open(&*path).expect("opens"));
                let mut select = db.prepare_cached(SELECT).expect("prepares");
                let row = select.query_row([id.as_bytes().as_slice()], |row| {
                    let (state, lane, detail) = (
                        row.get::<_, i64>(0)?,
                        row.get::<_, Vec<u8>>(2)?,
                        row.get::<_, Vec<u8>>(3)?,
                    );
                    Ok((state, lane, detail))
                });
                row.is_ok()
            });
            assert!(found, "the row is there");
            answer(
                StatusCode::OK,
                Bytes::from_static(b"{\"state\":\"succeeded\"}"),
            )
        }
    })
    .await
}

/// Hyper, the same authentication, the same two group commits as a provision.
pub(crate) async fn skeleton_provision(port: u16, dir: &Path) -> ServeResult {
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(dir.join("skeleton-provision.db")).await?);
    let worker = WorkerId::fresh();
    store.renew(worker, Duration::from_secs(3600)).await?;
    let realm = Realm::new("broker")?;
    listen(port, move |request: Request<Incoming>| {
        let (store, realm) = (store.clone(), realm.clone());
        async move {
            if !admitted(&request) {
                return answer(StatusCode::UNAUTHORIZED, Bytes::new());
            }
            let path = request.uri().path().to_owned();
            let _ = request.into_body().collect().await;
            let id = path.rsplit('/').next().unwrap_or_default();
            let key = Key::new(&realm, Kind::new("instance"), &[id]).expect("a valid id");
            two_commits(store.as_ref(), key, worker).await;
            answer(StatusCode::CREATED, Bytes::from_static(b"{}"))
        }
    })
    .await
}

/// Writes as many bytes in as many rows as the broker for a provision with a trivial hook.
pub(crate) async fn two_commits(store: &dyn Store, key: Key, worker: WorkerId) {
    let id = OperationId::fresh();
    let terms = |lifecycle: &str| {
        vec![
            Term::new("plan", "6a1f8a1e-5d3f-4b1c-9c5e-0d1f1f6f7a02"),
            Term::new("lifecycle", lifecycle),
        ]
    };
    let body = Bytes::from_static(&[3; 560]);
    let accept = Commit::new()
        .insert(key.clone(), terms("creating"), body.clone())
        .start(NewOperation {
            id,
            lane: key.clone(),
            verb: "provision",
            queue: Queue::named("broker"),
            start: Start::Claimed(worker),
            detail: Bytes::from_static(&[4; 46]),
            request: Bytes::from_static(&[5; 420]),
        });
    let version = Version(accept.id());
    store.commit(&accept).await.expect("accepted");
    let result = Commit::new()
        .replace(key, version, terms("live"), body)
        .advance(
            id,
            Next::Done(Outcome::Succeeded),
            Some(Bytes::from_static(&[6; 46])),
            None,
        )
        .fenced(id, Fence(1));
    store.commit(&result).await.expect("done");
}

fn admitted<B>(request: &Request<B>) -> bool {
    let header = request
        .headers()
        .get(AUTHORIZATION)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    let given = header
        .get(6..)
        .and_then(|rest| base64::engine::general_purpose::STANDARD.decode(rest).ok());
    let digest = |bytes: &[u8]| -> [u8; 32] { Sha256::digest(bytes).into() };
    let expected = digest(format!("{USER}:{PASSWORD}").as_bytes());
    bool::from(digest(&given.unwrap_or_default()).ct_eq(&expected))
}

fn answer(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let tagged = body.len() == CATALOG_BYTES.len();
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if tagged {
        let tag = HeaderValue::from_static("\"00112233445566778899aabbccddeeff\"");
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

async fn listen<F, W>(port: u16, serve: F) -> ServeResult
where
    F: Fn(Request<Incoming>) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let serve = serve.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answered = serve(request);
                async move { Ok::<_, Infallible>(answered.await) }
            });
            let mut builder = Builder::new(TokioExecutor::new());
            builder
                .http1()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(15));
            let _ = builder
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
