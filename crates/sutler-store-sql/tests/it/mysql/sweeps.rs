//! Cost of a sweep: it visits the rows it deletes, not those that stay. Measured in rows, not in time.

use super::conformance::MySql;
use sqlx::mysql::{MySqlConnection, MySqlRow};
use sqlx::{Executor as _, Row as _};

/// Ended operations: many old ones of one kind, a few old ones of another, and some recent ones.
const ENDED: &str = "
    INSERT INTO sutler_op (id, due, fence, accepted, finished, attempt, takeovers, state, cancel, pinned,
        verb, queue, lane, detail, request, progress)
    SELECT UNHEX(MD5(n)), 1, 1, 1, IF(n % 10 = 0, 2000 + n, n % 1000), 1, 0, 3, 0, 0, 'v', 'q',
        CONCAT('test', 0x00, IF(n % 20 = 1, 'few', 'many'), 0x00, MD5(n)), '', '', ''
    FROM (
        WITH RECURSIVE digit (d) AS (SELECT 0 UNION ALL SELECT d + 1 FROM digit WHERE d < 9)
        SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d AS n
        FROM digit a, digit b, digit c, digit e, digit f WHERE f.d < 2) numbers";
/// A batch of a hundred operations that ended before 1000.
const SWEEP: &str = "CALL sutler_sweep_v1(3, ?, ?, 1000, 100)";
/// Rows that this session has visited so far, including internal tables of the server.
const VISITED: &str = "SHOW SESSION STATUS LIKE 'Handler_read%'";

async fn visited(db: &mut MySqlConnection) -> u64 {
    let rows = db.fetch_all(sqlx::raw_sql(VISITED)).await.expect("numbers");
    let number = |row: &MySqlRow| {
        row.get_unchecked::<String, _>(1)
            .parse::<u64>()
            .expect("a number")
    };
    rows.iter().map(number).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_visits_only_the_rows_it_deletes() {
    let Some(candidate) = MySql::fresh().await else {
        return;
    };
    let mut place = candidate.place.lock().await;
    let db = &mut place.db;
    db.execute(ENDED).await.expect("operations");
    for (from, swept, most) in [
        ("test\0few\0", 100, 1000),
        ("test\0many\0", 100, 1000),
        ("test\0", 100, 1000),
        ("", 100, 1000),
        ("test\0no\0", 0, 100),
    ] {
        let mut after = from.as_bytes().to_vec();
        match after.pop() {
            Some(last) => after.push(last + 1),
            None => after.push(u8::MAX),
        }
        // The query itself counts, too.
        let asking = visited(db).await;
        let before = visited(db).await;
        let asking = before - asking;
        let sweep = sqlx::query(SWEEP).bind(from.as_bytes()).bind(after);
        let row = sweep.fetch_one(&mut *db).await.expect("a sweep");
        assert_eq!(row.get_unchecked::<i64, _>(0), swept, "{from:?}");
        let visited = visited(db).await - before - asking;
        assert!(visited <= most, "{from:?}: {visited} rows were looked at");
    }
}
