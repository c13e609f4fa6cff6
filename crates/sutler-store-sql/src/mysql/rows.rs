//! The cells of MySQL's rows. What they come to: `rows.rs` above.

use crate::rows::Cells;
use crate::trouble::{Trouble, odd};
use sqlx::Row;
use sqlx::mysql::MySqlRow;

impl Cells for MySqlRow {
    fn integer(&self, n: usize) -> Result<Option<i64>, Trouble> {
        self.try_get_unchecked(n).map_err(odd)
    }

    fn blob(&self, n: usize) -> Result<Option<&[u8]>, Trouble> {
        self.try_get_unchecked(n).map_err(odd)
    }
}
