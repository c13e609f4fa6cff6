//! Cost of a sweep: it visits the rows it deletes, not those that stay. Measured in rows, not in time.

use super::conformance::Postgres;
use sqlx::postgres::PgConnection;
use sqlx::{Executor as _, Row as _};
use sutler_store_sql::faults;

/// Ended operations: many old ones of one kind, a few old ones of another, and some recent ones.
const ENDED: &str = "
    INSERT INTO sutler_op (id, due, fence, accepted, finished, attempt, takeovers, state, cancel, pinned,
        verb, queue, lane, detail, request, progress)
    SELECT gen_random_uuid(), 1, 1, 1, CASE WHEN n % 10 = 0 THEN 2000 + n ELSE n % 1000 END, 1, 0, 3, false,
        false, 'v', 'q', convert_to('test', 'UTF8') || '\\x00'::bytea
            || convert_to(CASE WHEN n % 20 = 1 THEN 'few' ELSE 'many' END, 'UTF8') || '\\x00'::bytea
            || uuid_send(gen_random_uuid()), '', '', ''
    FROM generate_series(1, 20000) AS n";
/// A batch of a hundred operations that ended before 1000, in lanes from $1 up to $2; rolled back afterwards.
const SWEEP: &str = "SELECT sutler_sweep_v1('{3,4,5}', $1, $2, 1000, 100)";
/// Rows visited by this session since its statistics were last sent, which never happens in a transaction.
const VISITED: &str = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables
    WHERE relid = 'sutler_op'::regclass";

async fn visited(db: &mut PgConnection) -> i64 {
    db.fetch_one(VISITED).await.expect("a number").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_visits_only_the_rows_it_deletes() {
    let Some(candidate) = Postgres::fresh().await else {
        return;
    };
    let mut db = faults::connection(&candidate.url).await;
    db.execute(ENDED).await.expect("operations");
    for (from, swept, most) in [
        ("test\0few\0", 100, 250),
        ("test\0many\0", 100, 250),
        ("test\0", 100, 250),
        ("", 100, 250),
        ("test\0no\0", 0, 10),
    ] {
        db.execute("BEGIN").await.expect("a transaction");
        let mut after = from.as_bytes().to_vec();
        match after.pop() {
            Some(last) => after.push(last + 1),
            None => after.push(u8::MAX),
        }
        let sweep = sqlx::query(SWEEP).bind(from.as_bytes()).bind(after);
        let before = visited(&mut db).await;
        let row = sweep.fetch_one(&mut db).await.expect("a sweep");
        assert_eq!(row.get::<i64, _>(0), swept, "{from:?}");
        let visited = visited(&mut db).await - before;
        assert!(visited <= most, "{from:?}: {visited} rows were looked at");
        db.execute("ROLLBACK").await.expect("as it was");
    }
}
