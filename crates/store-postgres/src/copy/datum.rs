//! One value on its way into a table: it takes the type of the column that it goes to.

use bytes::BytesMut;
use orchestrator_store::copy::Cell;
use std::error::Error;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

/// A value.
#[derive(Clone, Debug)]
pub enum Datum {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    Digest(Uuid),
}

impl From<Cell> for Datum {
    fn from(cell: Cell) -> Datum {
        match cell {
            Cell::Null => Datum::Null,
            Cell::Int(n) => Datum::Int(n),
            // Text in PostgreSQL cannot hold the character zero.
            Cell::Text(text) if text.contains('\0') => Datum::Text(text.replace('\0', "\u{FFFD}")),
            Cell::Text(text) => Datum::Text(text),
            Cell::Bytes(bytes) => Datum::Bytes(bytes),
        }
    }
}

impl ToSql for Datum {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Datum::Null => Ok(IsNull::Yes),
            Datum::Int(n) => match *ty {
                Type::BOOL => (*n != 0).to_sql(ty, out),
                Type::INT2 => i16::try_from(*n)?.to_sql(ty, out),
                Type::INT4 => i32::try_from(*n)?.to_sql(ty, out),
                Type::INT8 => n.to_sql(ty, out),
                _ => Err(format!("a number is no {ty}").into()),
            },
            Datum::Text(text) => text.to_sql_checked(ty, out),
            Datum::Bytes(bytes) => bytes.to_sql_checked(ty, out),
            Datum::Digest(digest) => digest.to_sql_checked(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // Which types go depends on the value.
        true
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(datum: &Datum, ty: &Type) -> Option<Vec<u8>> {
        let mut out = BytesMut::new();
        let null = datum.to_sql(ty, &mut out).ok()?;
        Some(if matches!(null, IsNull::Yes) { vec![] } else { out.to_vec() })
    }

    #[test]
    fn a_number_takes_the_width_of_its_column_or_is_refused() {
        assert_eq!(bytes(&Datum::Int(7), &Type::INT2), Some(vec![0, 7]));
        assert_eq!(bytes(&Datum::Int(7), &Type::INT4), Some(vec![0, 0, 0, 7]));
        assert_eq!(bytes(&Datum::Int(1), &Type::BOOL), Some(vec![1]));
        assert_eq!(bytes(&Datum::Int(1 << 40), &Type::INT4), None);
        assert_eq!(bytes(&Datum::Int(7), &Type::TEXT), None);
        assert_eq!(bytes(&Datum::Text("7".to_owned()), &Type::INT8), None);
    }

    #[test]
    fn the_character_zero_is_replaced() {
        let datum = Datum::from(Cell::Text("a\0b".to_owned()));
        assert_eq!(bytes(&datum, &Type::TEXT), Some("a\u{FFFD}b".as_bytes().to_vec()));
    }
}
