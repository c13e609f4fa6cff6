//! Ids as PostgreSQL's `uuid`, single and in arrays.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo};
use sqlx::{Encode, Postgres, Type};
use uuid::Uuid;

/// Object ids of the types, which PostgreSQL never changes.
const UUID: Oid = Oid(2950);
const UUID_ARRAY: Oid = Oid(2951);

/// An id.
#[derive(Clone, Copy)]
pub(super) struct Id(pub(super) Uuid);

impl Type<Postgres> for Id {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(UUID)
    }
}

impl PgHasArrayType for Id {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(UUID_ARRAY)
    }
}

impl Encode<'_, Postgres> for Id {
    fn encode_by_ref(&self, to: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        to.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }
}
