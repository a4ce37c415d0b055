//! `pg_ndistinct` and `pg_dependencies`: extended statistics (`CREATE STATISTICS`).
//!
//! Both `pg_ndistinct` and `pg_dependencies` values consist of a magic number, a version and a list
//! of items. Each item contains a float8 and a list of column numbers. Since PostgreSQL 19, they
//! are printed as JSON with named fields. Earlier releases use a more compact format.
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
            digits::separate(at, b", ", out);
            digits::signed(i64::from(i16::from_le_bytes(column)), out);
        }
    }

    fn last(&self) -> i64 {
        self.columns.last().map_or(0, |&column| i64::from(i16::from_le_bytes(column)))
    }
}

/// Checks that the value starts with `magic`, then reads its items and calls `write` for each of
/// them. `wide` is true if the number of columns in an item is stored in four bytes rather than
/// two. This function also prints the brackets around the list.
fn items(
    (type_name, magic, wide): (&'static str, u32, bool),
    value: &[u8],
    named: bool,
    out: &mut Vec<u8>,
    write: impl Fn(&Item<'_>, &mut Vec<u8>),
) -> Result<(), ValueError> {
    let mut reader = Reader::new(type_name, value);
    if (reader.read::<u32>()?, reader.read::<u32>()?) != (magic, 1) {
        return Err(reader.error("not its magic number, or another version"));
    }
    out.push(if named { b'[' } else { b'{' });
    for at in 0..reader.read::<u32>()? as usize {
        let number = reader.read()?;
        let count =
            if wide { reader.read::<u32>()? as usize } else { reader.read::<u16>()?.into() };
        if !(2..=COLUMNS_MAX).contains(&count) {
            return Err(reader.error("an impossible number of columns"));
        }
        let columns = reader.take(count * 2)?.as_chunks::<2>().0;
        digits::separate(at, b", ", out);
        out.extend_from_slice(if named { b"{\"attributes\": [" } else { b"\"" });
        write(&Item { number, columns }, out);
        out.extend_from_slice(if named { b"}" } else { b"" });
    }
    out.push(if named { b']' } else { b'}' });
    reader.end()
}

/// A `pg_ndistinct`: the estimated number of distinct values of each column combination.
pub(super) fn ndistinct(value: &[u8], major: u32, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let named = major >= NAMED_SINCE;
    items(("pg_ndistinct", 0xA352_BFA4, true), value, named, out, |item, out| {
        item.write_columns(0, out);
        out.extend_from_slice(if named { b"], \"ndistinct\": " } else { b"\": " });
        digits::signed(i64::from(item.number as i32), out);
    })
}

/// A `pg_dependencies`: the degree to which the leading columns determine the last one.
pub(super) fn dependencies(value: &[u8], major: u32, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let named = major >= NAMED_SINCE;
    items(("pg_dependencies", 0xB454_9A2C, false), value, named, out, |item, out| {
        item.write_columns(1, out);
        out.extend_from_slice(if named { b"], \"dependency\": " } else { b" => " });
        digits::signed(item.last(), out);
        out.extend_from_slice(if named { b", \"degree\": " } else { b"\": " });
        out.extend_from_slice(format!("{:.6}", item.number).as_bytes());
    })
}
