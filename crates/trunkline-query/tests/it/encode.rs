//! Rows as clients receive them, compared with what `COPY … TO STDOUT` of a server printed.

use trunkline_query::encode::{ClientEncoding, CopyEncoder, CopyOptions, RowEncoder, ValueFormat};
use trunkline_query::{StatementContext, execute};
use trunkline_sql::SqlError;
use trunkline_sql::syntax::{CopySource, SelectStatement, Statement, parse};

use crate::answers::versions;
use crate::cluster::{open, runtime};
use crate::queries::bound_select;

const ROW: &str = "select 1 as \"a,b\", 'x,\"y\\'||chr(10)||'z'||chr(9) as t, null::text as n, '' as e, \
    true as b, 1.50::numeric as d, '{a,NULL,\"b c\"}'::text[] as r, date '2024-02-29' as day";

fn encode(
    context: &StatementContext,
    select: &SelectStatement,
    mut write: impl FnMut(&trunkline_query::Rows, &[arrow_array::RecordBatch]) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let bound = bound_select(context, select)?;
    runtime().block_on(async {
        let mut rows = execute(&bound, context).await?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.next().await? {
            batches.push(batch);
        }
        write(&rows, &batches)
    })
}

/// What `COPY (ROW) TO STDOUT` sends with these options.
fn copy(context: &StatementContext, query: &str, options: &str) -> Result<Vec<u8>, SqlError> {
    let statements = parse(&format!("copy ({query}) to stdout {options}"))?;
    let Statement::CopyTo(copy) = &statements[0].statement else { panic!("a COPY") };
    let CopySource::Query(select) = &copy.source else { panic!("a query") };
    let environment = &context.environment;
    let options = CopyOptions::read(&copy.options, environment.settings.major)?;
    let mut out = Vec::new();
    encode(context, select, |rows, batches| {
        let encoding = ClientEncoding::new(6, options.encoding.unwrap_or(6))?;
        let encoder = CopyEncoder::new(rows.columns(), options.clone(), environment, encoding)?;
        encoder.write_header(&mut out)?;
        for batch in batches {
            let mut rows = encoder.batch(batch)?;
            for row in 0..batch.num_rows() {
                encoder.write_row(&mut rows, row, &mut out)?;
            }
        }
        encoder.write_trailer(&mut out);
        Ok(())
    })?;
    Ok(out)
}

#[test]
fn copy_writes_the_bytes_of_the_server() {
    let Some((_, directory)) = versions().pop() else { return };
    let context = open(&directory.join("../../data"), "shop");
    let check = |query: &str, options: &str, expected: &[u8]| {
        let found = copy(&context, query, options).expect(options);
        assert_eq!(found.escape_ascii().to_string(), expected.escape_ascii().to_string());
    };
    check(ROW, "", b"1\tx,\"y\\\\\\nz\\t\t\\N\t\tt\t1.50\t{a,NULL,\"b c\"}\t2024-02-29\n");
    check(
        ROW,
        "(format csv, header, force_quote (d, n))",
        b"\"a,b\",t,n,e,b,d,r,day\n\
          1,\"x,\"\"y\\\nz\t\",,\"\",t,\"1.50\",\"{a,NULL,\"\"b c\"\"}\",2024-02-29\n",
    );
    check(
        ROW,
        "(format csv, delimiter ';', null 'NULL', quote '''', escape '\\', force_quote *)",
        b"'1';'x,\"y\\\\\nz\t';NULL;'';'t';'1.50';'{a,NULL,\"b c\"}';'2024-02-29'\n",
    );
    check(
        ROW,
        "(delimiter '|', null '-', header)",
        b"a,b|t|n|e|b|d|r|day\n1|x,\"y\\\\\\nz\\t|-||t|1.50|{a,NULL,\"b c\"}|2024-02-29\n",
    );
    check("values ('\\.')", "(format csv)", b"\"\\.\"\n");
    check("select 'Größe'", "(encoding 'latin1')", b"Gr\xF6\xDFe\n");
    let binary: Vec<u8> = BINARY
        .as_bytes()
        .chunks(2)
        .map(|digits| {
            let digits = str::from_utf8(digits).expect("ASCII");
            u8::from_str_radix(digits, 16).expect("hexadecimal")
        })
        .collect();
    check(ROW, "(format binary)", &binary);
}

const BINARY: &str = "5047434f50590aff0d0a0000000000000000000008000000040000000100\
    000008782c22795c0a7a09ffffffff0000000000000001010000000c0002\
    000000000002000113880000002400000001000000010000001900000003\
    000000010000000161ffffffff000000036220630000000400002279ffff";

/// A server of version 18 has been asked for each of these.
#[test]
fn options_of_copy_fail_as_on_the_server() {
    let check = |options: &str, code: &str, message: &str| {
        let statements =
            parse(&format!("copy (select 1 as a) to stdout ({options})")).expect("SQL");
        let Statement::CopyTo(copy) = &statements[0].statement else { panic!("a COPY") };
        let error = CopyOptions::read(&copy.options, 18).expect_err(options);
        assert_eq!((error.code().as_str(), error.message()), (code, message));
    };
    check("format xx", "22023", "COPY format \"xx\" not recognized");
    check("delimiter 'ab'", "0A000", "COPY delimiter must be a single one-byte character");
    check("quote 'a'", "0A000", "COPY QUOTE requires CSV mode");
    check("force_quote *", "0A000", "COPY FORCE_QUOTE requires CSV mode");
    check("format binary, delimiter ','", "42601", "cannot specify DELIMITER in BINARY mode");
    check("format binary, header", "0A000", "cannot specify HEADER in BINARY mode");
    check(
        "null 'a,b', delimiter ','",
        "22023",
        "COPY delimiter character must not appear in the NULL specification",
    );
    check("freeze", "22023", "COPY FREEZE cannot be used with COPY TO");
    check("default 'x'", "0A000", "COPY DEFAULT cannot be used with COPY TO");
    check("header match", "0A000", "cannot use \"match\" with HEADER in COPY TO");
    check("header 3", "42601", "header requires a Boolean value or \"match\"");
    check("delimiter 'a'", "22023", "COPY delimiter cannot be \"a\"");
    check("foo 3", "42601", "option \"foo\" not recognized");
    check("format csv, format csv", "42601", "conflicting or redundant options");
    check("format csv, delimiter '\"'", "22023", "COPY delimiter and quote must be different");
    check("delimiter", "42601", "delimiter requires a parameter");
    check(
        "encoding 'foo'",
        "22023",
        "argument to option \"encoding\" must be a valid encoding name",
    );
}

#[test]
fn rows_have_a_format_for_each_column() {
    let Some((_, directory)) = versions().pop() else { return };
    let context = open(&directory.join("../../data"), "shop");
    let statements = parse("select 7, 7, null::int").expect("SQL");
    let Statement::Select(select) = &statements[0].statement else { panic!("a query") };
    let (text, binary) = (ValueFormat::Text, ValueFormat::Binary);
    encode(&context, select, |rows, batches| {
        let encoder = |formats: &[ValueFormat]| {
            RowEncoder::new(rows.columns(), formats, &context.environment, ClientEncoding::UTF8)
        };
        let mut out = Vec::new();
        encoder(&[text, binary, text])?.batch(&batches[0])?.write_row(0, &mut out)?;
        assert_eq!(out, b"\0\0\0\x017\0\0\0\x04\0\0\0\x07\xFF\xFF\xFF\xFF");
        assert_eq!(encoder(&[text, binary]).expect_err("two").code().as_str(), "08P01");
        Ok(())
    })
    .expect("rows");
}
