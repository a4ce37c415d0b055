//! These tests deform rows that have the same layout as a server's, rows with fewer columns than
//! their table, and damaged rows. Deforming a row built by [`crate::Row`] must return the values it
//! was built from.

use super::*;
use crate::heap_tuple::heap_rows;
use crate::page_builder::HeapPageBuilder;
use crate::test_data::{XorShift, from_hex};
use crate::tuple_builder::TupleBuilder;
use crate::varlena::{Varlena, VarlenaError};

const BOOL: Attribute = Attribute { len: 1, align: Align::Char };
const INT2: Attribute = Attribute { len: 2, align: Align::Short };
const INT4: Attribute = Attribute { len: 4, align: Align::Int };
const INT8: Attribute = Attribute { len: 8, align: Align::Double };
const TEXT: Attribute = Attribute { len: -1, align: Align::Int };
const CSTRING: Attribute = Attribute { len: -2, align: Align::Char };
const NAME: Attribute = Attribute { len: 64, align: Align::Char };

/// Each column's datum, with `None` for null. The list ends at the first missing column.
#[track_caller]
fn walk<'a>(mut walk: Deformer<'a>, attributes: &[Attribute]) -> Vec<Option<&'a [u8]>> {
    let mut values = Vec::new();
    for &attribute in attributes {
        match walk.next(attribute).expect("sound") {
            Column::Value(value) => values.push(Some(value)),
            Column::Null => values.push(None),
            Column::Missing => break,
        }
    }
    values
}

#[test]
fn columns_of_every_width() {
    let mut row = TupleBuilder::new();
    row.bool(true).int2(2).int4(3).int8(4).null().text("ab").int4(5).text([b'x'; 200]);
    row.bool(false).text_unpacked("u").int8(6);
    let mut page = HeapPageBuilder::new(0);
    page.push(&row.tuple()).expect("room");
    let page = page.finish(false);
    let tuple = heap_rows(&page).next().expect("one").expect("sound");
    let attributes = [BOOL, INT2, INT4, INT8, INT4, TEXT, INT4, TEXT, BOOL, TEXT, INT8, NAME, INT8];
    let long = [&0x330_u32.to_le_bytes()[..], &[b'x'; 200]].concat();
    let expected: [Option<&[u8]>; 11] = [
        Some(&[1]),
        Some(&[2, 0]),
        Some(&[3, 0, 0, 0]),
        Some(&[4, 0, 0, 0, 0, 0, 0, 0]),
        None,
        Some(b"\x07ab"),
        Some(&[5, 0, 0, 0]),
        Some(&long),
        Some(&[0]),
        Some(b"\x14\0\0\0u"),
        Some(&[6, 0, 0, 0, 0, 0, 0, 0]),
    ];
    assert_eq!(walk(Deformer::of(&tuple), &attributes), expected);
    let all: Vec<_> = columns(&tuple, &attributes).map(|column| column.expect("sound")).collect();
    assert_eq!(all.len(), 13);
    assert_eq!(all[11..], [Column::Missing; 2]);
    assert_eq!(all[5].value().map(Varlena::parse), Some(Ok(Varlena::Plain(b"ab"))));
}

#[test]
fn strings_up_to_a_nul() {
    let walked = walk(Deformer::new(3, &[], b"ab\0\0\x07xy"), &[CSTRING, CSTRING, TEXT]);
    assert_eq!(walked, [Some(&b"ab"[..]), Some(b""), Some(b"\x07xy")]);
}

/// Tuples with fewer columns than the table, with more columns, and with no columns at all.
#[test]
fn other_numbers_of_columns() {
    assert_eq!(
        walk(Deformer::new(1, &[], &[1, 0, 0, 0]), &[INT4, INT4]),
        [Some(&[1, 0, 0, 0][..])]
    );
    assert_eq!(walk(Deformer::new(2, &[0b10], &[1, 0, 0, 0]), &[INT4]), [None]);
    assert_eq!(walk(Deformer::new(0, &[], &[]), &[INT4, TEXT]), [] as [Option<&[u8]>; 0]);
    // If the bitmap ends early, the remaining columns are not null.
    let mut data = [0; 40];
    data[36] = 9;
    let mut columns = Deformer::new(10, &[0xFF], &data);
    for _ in 0..9 {
        columns.next(INT4).expect("sound");
    }
    assert_eq!(columns.next(INT4), Ok(Column::Value(&[9, 0, 0, 0])));
}

#[test]
fn rows_that_end_early() {
    let error = |attributes: &[Attribute], data: &[u8]| {
        let mut walk = Deformer::new(9, &[], data);
        attributes.iter().map(|&attribute| walk.next(attribute)).find_map(Result::err)
    };
    let past_end =
        |column, offset| Some(ColumnError { column, offset, problem: ColumnProblem::PastEnd });
    assert_eq!(error(&[INT4, INT4], &[0; 7]), past_end(2, 4));
    assert_eq!(error(&[BOOL, INT8], &[0; 3]), past_end(2, 1));
    assert_eq!(error(&[INT4, TEXT], &[0; 4]), past_end(2, 4));
    assert_eq!(error(&[BOOL, TEXT], &[0; 3]), past_end(2, 1));
    assert_eq!(error(&[CSTRING], b"abc"), past_end(1, 0));
    assert_eq!(error(&[INT4, CSTRING], &[0; 4]), past_end(2, 4));
    let odd = Attribute { len: -3, align: Align::Int };
    let layout = ColumnError { column: 1, offset: 0, problem: ColumnProblem::Layout };
    assert_eq!(error(&[odd], &[0; 9]), Some(layout));
    let header = ColumnProblem::Header(VarlenaError::Short { wanted: 10, found: 2 });
    let short = ColumnError { column: 1, offset: 0, problem: header };
    assert_eq!(error(&[TEXT], &[21, 1]), Some(short));
    assert_eq!(short.to_string(), "column 1 at byte 0: a value of 10 bytes in 2 bytes");
    let padding = ColumnProblem::Header(VarlenaError::Length { length: 0 });
    let zeros = ColumnError { column: 1, offset: 0, problem: padding };
    assert_eq!(error(&[TEXT], &[0; 8]), Some(zeros));
}

/// `attmissingval` of `int default 42`, of a text, and of `int[] default '{7,8}'`.
#[test]
fn values_for_rows_from_before() {
    let head = |element: u32| [1, 0, element, 1, 1].map(u32::to_le_bytes).concat();
    let array = [head(23), vec![42, 0, 0, 0]].concat();
    assert_eq!(missing_value(&array, INT4), Some(&[42, 0, 0, 0][..]));
    let array = [head(25), vec![0x1C, 0, 0, 0, b'o', b'l', b'd']].concat();
    assert_eq!(missing_value(&array, TEXT), Some(&b"\x1C\0\0\0old"[..]));
    let element =
        from_hex("80000000 01000000 00000000 17000000 02000000 01000000 07000000 08000000");
    let array = [head(1007), element.clone()].concat();
    assert_eq!(missing_value(&array, TEXT), Some(&element[..]));
    assert_eq!(missing_value(&array[..30], TEXT), None);
    for (at, byte) in [(0, 2), (4, 24), (12, 2), (12, 0)] {
        let mut other = array.clone();
        other[at] = byte;
        assert_eq!(missing_value(&other, TEXT), None);
    }
    assert_eq!(missing_value(&[], INT4), None);
}

#[test]
fn any_bytes() {
    let seed = 0x70B1E;
    let mut random = XorShift(seed);
    let kinds = [BOOL, INT2, INT4, INT8, TEXT, CSTRING, NAME];
    for _ in 0..100_000 {
        let mut data = vec![0; random.below(120)];
        random.fill(&mut data);
        for byte in &mut data {
            if random.below(3) == 0 {
                *byte = [0, 1, 18, 2, 4, 7][random.below(6)];
            }
        }
        let nulls = [random.next() as u8, random.next() as u8];
        let nulls = &nulls[..random.below(3)];
        let mut walk = Deformer::new(random.below(2048) as u16, nulls, &data);
        for _ in 0..random.below(30) {
            let before = walk.offset();
            match walk.next(kinds[random.below(kinds.len())]) {
                Ok(Column::Value(value)) => {
                    assert!(walk.offset() >= before + value.len() && walk.offset() <= data.len());
                }
                Ok(_) => assert_eq!(walk.offset(), before),
                Err(error) => assert_eq!(error.offset, before),
            }
        }
        let _ = missing_value(&data, kinds[random.below(kinds.len())]);
    }
}
