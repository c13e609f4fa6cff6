//! The cells of MySQL's rows. Conversion to values: `rows.rs` above.

use crate::error::{SqlError, odd};
use crate::rows::Cells;
use sqlx::Row;
use sqlx::mysql::MySqlRow;

impl Cells for MySqlRow {
    fn integer(&self, n: usize) -> Result<Option<i64>, SqlError> {
        self.try_get_unchecked(n).map_err(odd)
    }

    fn blob(&self, n: usize) -> Result<Option<&[u8]>, SqlError> {
        self.try_get_unchecked(n).map_err(odd)
    }
}
