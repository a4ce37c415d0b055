//! Makes rows as values, as `ROW(1, 'a')` does.
//!
//! A row of a composite type is stored as the server stores it. How an anonymous one describes its
//! columns is in [`crate::text_output::RecordColumn`]'s module.

use crate::ids::Oid;
use crate::text_input::composite::{StoredColumn, store};
use crate::text_output::description::Record;
use crate::text_output::record::{RecordColumn, append_columns};

/// Appends the payload of a row. `values` has the values of the columns that were not dropped, in
/// storage form. For an anonymous record, `columns` describes them; otherwise it is empty.
pub fn write_row<'v>(
    record: &Record,
    columns: &[RecordColumn],
    values: impl IntoIterator<Item = Option<&'v [u8]>>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let mut values = values.into_iter();
    let stored: Vec<StoredColumn> = (record.fields.iter())
        .map(|field| {
            let value = field.ty.as_ref().and_then(|_| values.next().flatten());
            (field.attribute, value.map(<[u8]>::to_vec))
        })
        .collect();
    store(record.oid(), &stored, out);
    if record.oid() == Oid(2249) {
        append_columns(columns, start, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_output::{RowTypes, record_columns, row_fields};

    #[test]
    fn a_record_describes_its_columns() {
        let column = |oid: u32, name: &str| RecordColumn {
            oid: Oid(oid),
            collation: Oid(0),
            name: name.as_bytes().to_vec(),
        };
        // Without a catalog, only literals have a known type.
        let catalog = crate::test_catalog::Catalog::default();
        let columns = [column(705, "a"), column(705, "f2")];
        let record = Record::anonymous(&columns, &catalog).expect("known types");
        let mut value = b"before".to_vec();
        write_row(&record, &columns, [Some(&b"x"[..]), None], &mut value);
        let value = value.split_off(6);
        assert_eq!(record_columns(&value).expect("a record"), columns);
        let record = RowTypes::default().of(&value, &catalog).expect("a record");
        let fields = row_fields(&value, &record).expect("a record");
        let values: Vec<_> = fields.iter().map(|field| field.value.as_deref()).collect();
        assert_eq!(values, [Some(&b"x"[..]), None]);
    }
}
