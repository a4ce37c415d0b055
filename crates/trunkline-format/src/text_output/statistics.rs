//! `pg_ndistinct` and `pg_dependencies`: extended statistics (`CREATE STATISTICS`).
//!
//! Both consist of a magic number, a version and a list of items. An item is a float8 and a list of
//! column numbers. Since PostgreSQL 19 the output is JSON with named fields; earlier releases print
//! a shorter form.
//!
//! Mirrors `MVNDistinct` and `MVDependencies` of PostgreSQL's `statistics/statistics.h`, as
//! `mvdistinct.c` and `dependencies.c` store them.

use super::digits;
use super::error::ValueError;
use super::reader::Reader;

/// The first version that prints JSON.
const NAMED_SINCE: u32 = 19;
/// `STATS_MAX_DIMENSIONS`: the most columns that one statistics object can cover.
const COLUMNS_MAX: usize = 8;

/// One item: a statistic and the columns it covers.
struct Item<'a> {
    number: f64,
    columns: &'a [[u8; 2]],
}

impl Item<'_> {
    /// The column numbers, separated by commas.
    fn write_columns(&self, but: usize, out: &mut Vec<u8>) {
        for (at, &column) in self.columns.iter().take(self.columns.len() - but).enumerate() {
            if at > 0 {
                out.extend_from_slice(b", ");
            }
            digits::signed(i64::from(i16::from_le_bytes(column)), out);
        }
    }

    fn last(&self) -> i64 {
        self.columns.last().map_or(0, |&column| i64::from(i16::from_le_bytes(column)))
    }
}

/// Calls `write` with each item's index and the item.
fn items(
    (type_name, magic, wide): (&'static str, u32, bool),
    value: &[u8],
    mut write: impl FnMut(usize, &Item<'_>),
) -> Result<(), ValueError> {
    let mut reader = Reader::new(type_name, value);
    if (reader.read::<u32>()?, reader.read::<u32>()?) != (magic, 1) {
        return Err(reader.error("not its magic number, or another version"));
    }
    for at in 0..reader.read::<u32>()? as usize {
        let number = reader.read::<f64>()?;
        let count =
            if wide { reader.read::<u32>()? as usize } else { usize::from(reader.read::<u16>()?) };
        if !(2..=COLUMNS_MAX).contains(&count) {
            return Err(reader.error("an impossible number of columns"));
        }
        write(at, &Item { number, columns: reader.take(count * 2)?.as_chunks::<2>().0 });
    }
    reader.end()
}

/// A `pg_ndistinct`: the estimated number of distinct values of each column combination.
pub(super) fn ndistinct(value: &[u8], major: u32, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let named = major >= NAMED_SINCE;
    out.push(if named { b'[' } else { b'{' });
    items(("pg_ndistinct", 0xA352_BFA4, true), value, |at, item| {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        let number = item.number as i32;
        out.extend_from_slice(if named { b"{\"attributes\": [" } else { b"\"" });
        item.write_columns(0, out);
        out.extend_from_slice(if named { b"], \"ndistinct\": " } else { b"\": " });
        digits::signed(i64::from(number), out);
        if named {
            out.push(b'}');
        }
    })?;
    out.push(if named { b']' } else { b'}' });
    Ok(())
}

/// A `pg_dependencies`: the degree to which the leading columns determine the last one.
pub(super) fn dependencies(value: &[u8], major: u32, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let named = major >= NAMED_SINCE;
    out.push(if named { b'[' } else { b'{' });
    items(("pg_dependencies", 0xB454_9A2C, false), value, |at, item| {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(if named { b"{\"attributes\": [" } else { b"\"" });
        item.write_columns(1, out);
        out.extend_from_slice(if named { b"], \"dependency\": " } else { b" => " });
        digits::signed(item.last(), out);
        out.extend_from_slice(if named { b", \"degree\": " } else { b"\": " });
        out.extend_from_slice(format!("{:.6}", item.number).as_bytes());
        if named {
            out.push(b'}');
        }
    })?;
    out.push(if named { b']' } else { b'}' });
    Ok(())
}
