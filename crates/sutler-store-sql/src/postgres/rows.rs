//! The cells of PostgreSQL's rows. Conversion to values: `rows.rs` above.

use crate::error::{SqlError, odd};
use crate::rows::Cells;
use sqlx::postgres::{PgRow, PgValueFormat};
use sqlx::{Row, ValueRef};

impl Cells for PgRow {
    fn integer(&self, n: usize) -> Result<Option<i64>, SqlError> {
        let Some(bytes) = self.blob(n)? else {
            return Ok(None);
        };
        let number = match *bytes {
            [truth] => i64::from(truth),
            [a, b] => i64::from(i16::from_be_bytes([a, b])),
            [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
            _ => i64::from_be_bytes(bytes.try_into().map_err(odd)?),
        };
        Ok(Some(number))
    }

    fn blob(&self, n: usize) -> Result<Option<&[u8]>, SqlError> {
        let cell = self.try_get_raw(n).map_err(odd)?;
        match cell.format() {
            _ if cell.is_null() => Ok(None),
            PgValueFormat::Binary => cell.as_bytes().map(Some).map_err(odd),
            PgValueFormat::Text => Err(odd("a cell is text")),
        }
    }
}
