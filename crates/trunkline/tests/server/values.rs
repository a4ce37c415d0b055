//! Random values of every type, as SQL expressions: ordinary, extreme, nested and long ones.
//!
//! Almost all values are valid. If a server rejects a value, only its statement fails and the run
//! continues.

use trunkline_aio::facade::random::Rng;

use crate::compound;

/// A random element.
pub(crate) fn pick<'a, T: ?Sized>(rng: &mut Rng, all: &[&'a T]) -> &'a T {
    all[rng.below(all.len() as u64) as usize]
}

/// True with a probability of 1 / `of`.
pub(crate) fn chance(rng: &mut Rng, of: u64) -> bool {
    rng.below(of) == 0
}

/// The types this file generates values for, and the compound types of
/// [`compound`](crate::compound).
pub(crate) const TYPES: &[&str] = &[
    "bool",
    "\"char\"",
    "int2",
    "int4",
    "int8",
    "oid",
    "float4",
    "float8",
    "numeric",
    "numeric(20,5)",
    "text",
    "varchar(40)",
    "varchar",
    "char(12)",
    "bpchar",
    "name",
    "refcursor",
    "bytea",
    "date",
    "time",
    "timetz",
    "timestamp",
    "timestamptz",
    "timestamptz(2)",
    "interval",
    "uuid",
    "json",
    "jsonb",
    "inet",
    "cidr",
    "macaddr",
    "macaddr8",
    "bit(11)",
    "varbit",
    "money",
    "point",
    "line",
    "lseg",
    "box",
    "path",
    "polygon",
    "circle",
    "tsvector",
    "tsquery",
    "xid",
    "xid8",
    "cid",
    "tid",
    "pg_lsn",
    "pg_snapshot",
    "txid_snapshot",
    "xml",
    "jsonpath",
    "aclitem",
    "oidvector",
    "int2vector",
    "regclass",
    "regtype",
    "regproc",
    "regprocedure",
    "regoper",
    "regoperator",
    "regrole",
    "regnamespace",
    "regconfig",
    "regdictionary",
    "regcollation",
    "int4range",
    "int8range",
    "numrange",
    "daterange",
    "tsrange",
    "tstzrange",
    "s.textrange",
    "int4multirange",
    "int8multirange",
    "nummultirange",
    "datemultirange",
    "tsmultirange",
    "tstzmultirange",
    "s.textmultirange",
    "s.mood",
    "s.small",
    "s.smaller",
    "s.list",
    "s.couple",
    "s.span",
    "s.pair",
    "s.tree",
    "s.mix",
    "s.shift",
];

/// A random value of a type, or of an array of it if the name ends in `[]`.
pub(crate) fn value(rng: &mut Rng, ty: &str) -> String {
    if let Some(element) = ty.strip_suffix("[]") {
        return compound::array(rng, element);
    }
    if let Some(value) = compound::value(rng, ty) {
        return value;
    }
    let text = match ty {
        "text" => return long_text(rng),
        "bytea" => return long_bytes(rng),
        "jsonb" | "json" if chance(rng, 40) => {
            let depth = 1 + rng.below(300);
            return format!("(repeat('[', {depth}) || '1e400' || repeat(']', {depth}))::{ty}");
        }
        "jsonb" | "json" => return format!("{}::{ty}", quoted(&json(rng, 3))),
        "xml" if chance(rng, 9) => {
            return format!("repeat('<a b=\"1\">x</a>', {})::xml", 1 + rng.below(900));
        }
        "xml" => format!("<a b=\"{}\">{}</a>", rng.below(100), rng.below(100)),
        _ => plain(rng, ty),
    };
    format!("{}::{ty}", quoted(&text))
}

/// A literal.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains('\\') {
        return format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
    }
    format!("'{}'", text.replace('\'', "''"))
}

fn plain(rng: &mut Rng, ty: &str) -> String {
    match ty {
        "bool" => pick(rng, &["t", "f"]).into(),
        "\"char\"" => pick(rng, &["a", "", "\\", "\t", "Z", "\\377"]).into(),
        "int2" => number(rng, 15),
        "int4" => number(rng, 31),
        "int8" => number(rng, 63),
        "oid" | "xid" | "cid" => rng.below(1 << 32).to_string(),
        "xid8" => rng.next_u64().to_string(),
        "float4" | "float8" => float(rng, ty == "float4"),
        "numeric" => numeric(rng),
        "numeric(20,5)" => format!("{}.{}", number(rng, 45), rng.below(1_000_000)),
        "varchar(40)" => short_text(rng, 40),
        "varchar" | "bpchar" | "refcursor" => short_text(rng, 200),
        "char(12)" => short_text(rng, 12),
        "name" => short_text(rng, 60),
        "uuid" => {
            let (high, low) = (rng.next_u64(), rng.next_u64());
            format!("{high:016x}{low:016x}")
        }
        "macaddr" => format!("{:012x}", rng.next_u64() >> 16),
        "macaddr8" => format!("{:016x}", rng.next_u64()),
        "bit(11)" => format!("{:011b}", rng.below(1 << 11)),
        "varbit" => {
            let bits = rng.below(80);
            (0..bits).map(|_| if chance(rng, 2) { '1' } else { '0' }).collect()
        }
        "money" => format!("{}.{:02}", number(rng, 40), rng.below(100)),
        "tid" => format!("({},{})", rng.below(1 << 32), rng.below(1 << 16)),
        "pg_lsn" => format!("{:X}/{:X}", rng.below(1 << 32), rng.below(1 << 32)),
        "pg_snapshot" | "txid_snapshot" => {
            let low = 3 + rng.below(1000);
            format!("{low}:{}:{},{}", low + 20, low + 2, low + 9)
        }
        "inet" | "cidr" => network(rng, ty == "cidr"),
        "s.mood" => pick(rng, &["sad", "ok", "happy", "o'k \"x\"", "late"]).into(),
        "s.small" | "s.smaller" => rng.below(100).to_string(),
        "aclitem" => {
            pick(rng, &["postgres=arwdDxt/postgres", "=r/postgres", "postgres=a*r*/postgres"])
                .into()
        }
        "oidvector" | "int2vector" => {
            let numbers = (0..rng.below(9)).map(|_| number(rng, 15).replace('-', ""));
            numbers.collect::<Vec<_>>().join(" ")
        }
        _ if ty.starts_with("reg") => registered(rng, ty),
        "timestamptz(2)" => moment(rng, "timestamptz"),
        "date" | "time" | "timetz" | "timestamp" | "timestamptz" | "interval" => moment(rng, ty),
        "tsvector" | "tsquery" | "jsonpath" => searchable(rng, ty),
        _ => shape(rng, ty),
    }
}

/// The name or OID of an object, which need not exist.
fn registered(rng: &mut Rng, ty: &str) -> String {
    if chance(rng, 4) {
        return (if chance(rng, 2) { rng.below(1 << 32) } else { rng.below(17_000) }).to_string();
    }
    let names: &[&str] = match ty {
        "regclass" => &["pg_class", "s.t0", "s.t1", "information_schema.tables", "-"],
        "regtype" => &["int4", "s.mood", "s.pair[]", "timestamptz", "\"char\"", "numeric", "bit"],
        "regproc" => &["now", "pg_catalog.textin", "-"],
        "regprocedure" => &["sum(int4)", "now()", "length(text)", "s.plus(int4, s.mood)"],
        "regoper" => &["pg_catalog.||/", "0", "!!"],
        "regoperator" => &["+(int4,int4)", "-(none,int8)", "0"],
        "regrole" => &["postgres", "pg_monitor"],
        "regnamespace" => &["s", "pg_catalog"],
        "regconfig" => &["english", "simple"],
        "regdictionary" => &["simple", "english_stem"],
        _ => &["\"C\"", "\"default\"", "s.\"a b\""],
    };
    pick(rng, names).into()
}

/// An integer of up to `bits` bits, often an extreme one.
pub(crate) fn number(rng: &mut Rng, bits: u32) -> String {
    let most = (1_i128 << bits) - 1;
    let value = match rng.below(8) {
        0 => 0,
        1 => most,
        2 => -most - 1,
        3 => -1,
        _ => {
            let width = 1 + rng.below(u64::from(bits)) as u32;
            let value = i128::from(rng.below(1 << width.min(63)));
            if chance(rng, 3) { -value } else { value }
        }
    };
    value.clamp(-most - 1, most).to_string()
}

fn float(rng: &mut Rng, single: bool) -> String {
    match rng.below(9) {
        0 => pick(rng, &["NaN", "Infinity", "-Infinity", "-0", "0"]).into(),
        1 if single => pick(rng, &["1e-45", "3.4028235e38", "1.17549435e-38", "16777216"]).into(),
        1 => pick(rng, &["5e-324", "1.7976931348623157e308", "2.2250738585072014e-308", "1e16"])
            .into(),
        2 => format!("{}e{}", rng.below(10_000), rng.below(40) as i64 - 20),
        _ if single => {
            let value = f32::from_bits(rng.next_u64() as u32);
            if value.is_finite() { format!("{value:e}") } else { "1.5".into() }
        }
        _ => {
            let value = f64::from_bits(rng.next_u64());
            if value.is_finite() { format!("{value:e}") } else { "0.1".into() }
        }
    }
}

fn numeric(rng: &mut Rng) -> String {
    let digits = |rng: &mut Rng, most: u64| -> String {
        let count = 1 + rng.below(most);
        (0..count).map(|_| char::from(b'0' + rng.below(10) as u8)).collect()
    };
    let sign = if chance(rng, 3) { "-" } else { "" };
    match rng.below(8) {
        0 => pick(rng, &["NaN", "Infinity", "-Infinity", "0", "0.000", "-0.0"]).into(),
        1 => format!("{sign}{}e{}", digits(rng, 30), rng.below(300) as i64 - 150),
        2 => format!("{sign}{}.{}", digits(rng, 200), digits(rng, 200)),
        3 => format!("{sign}0.{:0>1$}", 1, 1 + rng.below(60) as usize),
        _ => format!("{sign}{}.{}", digits(rng, 12), digits(rng, 8)),
    }
}

/// Characters with a special meaning in COPY, arrays, composites, JSON or UTF-8.
const PIECES: [&str; 20] = [
    "a",
    "b",
    "xyz",
    "0",
    " ",
    "\t",
    "\n",
    "\\",
    "\"",
    "'",
    ",",
    "{",
    "}",
    "(",
    ")",
    "NULL",
    "ä",
    "€",
    "\u{1F600}",
    "\r",
];

pub(crate) fn short_text(rng: &mut Rng, most: usize) -> String {
    let mut text = String::new();
    for _ in 0..rng.below(8) {
        let piece = pick(rng, &PIECES);
        if text.len() + piece.len() <= most {
            text.push_str(piece);
        }
    }
    text
}

/// Text of up to about 100 kB: short, repetitive, or random and therefore incompressible.
fn long_text(rng: &mut Rng) -> String {
    match rng.below(40) {
        0 => format!("repeat({}, {})", quoted(&short_text(rng, 30)), rng.below(12_000)),
        1 | 2 => format!(
            "(select string_agg(md5((i * {})::text), '') from generate_series(1, {}) i)",
            rng.below(1 << 30),
            {
                let most = if chance(rng, 8) { 3000 } else { 130 };
                1 + rng.below(most)
            }
        ),
        3 => format!("repeat('x', {})", [126, 127, 1996, 1997, 3992, 7984][rng.below(6) as usize]),
        _ => format!("{}::text", quoted(&short_text(rng, 200))),
    }
}

fn long_bytes(rng: &mut Rng) -> String {
    match rng.below(30) {
        0 => format!(
            "(select string_agg(sha256((i * {})::text::bytea), '') from generate_series(1, {}) i)",
            rng.below(1 << 30),
            1 + rng.below(400)
        ),
        1 => format!("decode(repeat('00ff', {}), 'hex')", rng.below(9000)),
        _ => {
            let bytes: String =
                (0..rng.below(20)).map(|_| format!("{:02x}", rng.below(256))).collect();
            format!("'\\x{bytes}'::bytea")
        }
    }
}

fn json(rng: &mut Rng, depth: u32) -> String {
    let string = |rng: &mut Rng| {
        let text = short_text(rng, 30);
        let escaped: String = text
            .chars()
            .map(|c| match c {
                '"' => "\\\"".into(),
                '\\' => "\\\\".into(),
                '\n' => "\\n".into(),
                '\t' => "\\t".into(),
                '\r' => "\\r".into(),
                c => c.to_string(),
            })
            .collect();
        format!("\"{escaped}\"")
    };
    match rng.below(if depth == 0 { 4 } else { 7 }) {
        0 => pick(rng, &["null", "true", "false"]).into(),
        1 => match rng.below(3) {
            0 => number(rng, 62),
            1 => format!(
                "{}.{:05}e{}",
                rng.below(1000),
                rng.below(100_000),
                rng.below(90) as i64 - 45
            ),
            _ => format!("-{}.{}", rng.below(10), rng.below(1 << 40)),
        },
        2 | 3 => string(rng),
        4 => {
            let parts: Vec<String> = (0..rng.below(5)).map(|_| json(rng, depth - 1)).collect();
            format!("[{}]", parts.join(", "))
        }
        _ => {
            let many = if chance(rng, 30) { 200 } else { rng.below(5) };
            let parts: Vec<String> = (0..many)
                .map(|at| {
                    let key = if chance(rng, 2) { string(rng) } else { format!("\"k{at}\"") };
                    format!("{key}: {}", json(rng, depth - 1))
                })
                .collect();
            format!("{{{}}}", parts.join(","))
        }
    }
}

fn network(rng: &mut Rng, strict: bool) -> String {
    let v6 = chance(rng, 2);
    let bits = rng.below(if v6 { 129 } else { 33 });
    let text = if v6 {
        let zeros = chance(rng, 2);
        let parts: Vec<String> = (0..8)
            .map(|at| {
                if zeros && at > 2 && at < 6 {
                    "0".into()
                } else {
                    format!("{:x}", rng.below(1 << 16))
                }
            })
            .collect();
        format!("{}/{bits}", parts.join(":"))
    } else {
        let parts: Vec<String> = (0..4).map(|_| rng.below(256).to_string()).collect();
        format!("{}/{bits}", parts.join("."))
    };
    if strict {
        // Bits beyond the netmask must be 0.
        return pick(
            rng,
            &["10.0.0.0/8", "192.168.1.0/24", "0.0.0.0/0", "::/0", "2001:db8::/32", "::1/128"],
        )
        .into();
    }
    text
}

fn moment(rng: &mut Rng, ty: &str) -> String {
    let time = |rng: &mut Rng| match rng.below(6) {
        0 => "00:00:00".to_owned(),
        1 => "24:00:00".to_owned(),
        2 => "23:59:59.999999".to_owned(),
        _ => format!(
            "{:02}:{:02}:{:02}.{}",
            rng.below(24),
            rng.below(60),
            rng.below(60),
            rng.below(1_000_000)
        ),
    };
    let date = |rng: &mut Rng| {
        let year = match rng.below(6) {
            0 => 1 + rng.below(9),
            1 => 10_000 + rng.below(200_000),
            _ => 1900 + rng.below(200),
        };
        let (month, day) = (1 + rng.below(12), 1 + rng.below(28));
        let era = if year < 4000 && chance(rng, 8) { " BC" } else { "" };
        (format!("{year:04}-{month:02}-{day:02}"), era)
    };
    let zone = |rng: &mut Rng| pick(rng, &["+00", "+05:30", "-11", "+14", "-03:30:15"]);
    match ty {
        "time" => time(rng),
        "timetz" => format!("{}{}", time(rng), zone(rng)),
        "interval" => match rng.below(5) {
            0 => format!("{} microseconds", number(rng, 40)),
            1 => format!(
                "{} months {} days",
                rng.below(3000) as i64 - 1500,
                rng.below(900) as i64 - 450
            ),
            _ => format!(
                "{} years {} mons {} days {} hours {}.{} seconds",
                rng.below(400) as i64 - 200,
                rng.below(24) as i64 - 12,
                rng.below(60) as i64 - 30,
                rng.below(50) as i64 - 25,
                rng.below(100),
                rng.below(1_000_000)
            ),
        },
        _ if chance(rng, 10) => pick(rng, &["infinity", "-infinity"]).into(),
        "date" => {
            let (date, era) = date(rng);
            format!("{date}{era}")
        }
        "timestamp" => {
            let ((date, era), time) = (date(rng), time(rng));
            format!("{date} {time}{era}")
        }
        _ => {
            let ((date, era), time, zone) = (date(rng), time(rng), zone(rng));
            format!("{date} {time}{zone}{era}")
        }
    }
}

fn searchable(rng: &mut Rng, ty: &str) -> String {
    match ty {
        "tsvector" => {
            let words = rng.below(6);
            let word = |rng: &mut Rng| {
                let word = pick(rng, &["cat", "dog", "it''s", "a\\\\b", "ä", "long-word", "x:y"]);
                match rng.below(3) {
                    0 => format!("'{word}'"),
                    1 => format!("'{word}':{}", 1 + rng.below(16_383)),
                    _ => format!("'{word}':{}A,{}", 1 + rng.below(50), 60 + rng.below(50)),
                }
            };
            (0..words).map(|_| word(rng)).collect::<Vec<_>>().join(" ")
        }
        "tsquery" => pick(
            rng,
            &[
                "cat",
                "cat & dog",
                "cat | !dog",
                "(cat | dog) & x:*AB",
                "a <-> b",
                "a <3> (b | c)",
                "!(!a & b)",
                "",
                "'it''s' & 'q\\\\'",
            ],
        )
        .into(),
        _ => pick(
            rng,
            &[
                "$",
                "$.a.b",
                "strict $.\"a b\"[*] ? (@.x > 3 && @.y == \"q\")",
                "$.a[1 to last]",
                "$.** ? (exists (@.b))",
                "$.a.type()",
                "-$.x + 2 * 3",
                "lax $[*] ? (@ like_regex \"^a\" flag \"i\")",
            ],
        )
        .into(),
    }
}

fn shape(rng: &mut Rng, ty: &str) -> String {
    let mut point = || format!("({},{})", float(rng, true), float(rng, true));
    match ty {
        "point" => point(),
        "lseg" => format!("[{},{}]", point(), point()),
        "box" => format!("{},{}", point(), point()),
        "circle" => format!("<{},{}>", point(), rng.below(1000)),
        "line" => format!("{{{},{},{}}}", 1 + rng.below(9), rng.below(100), number(rng, 20)),
        "path" => {
            let points: Vec<String> = (0..4).map(|_| point()).collect();
            match rng.below(2) {
                0 => format!("[{}]", points.join(",")),
                _ => format!("({})", points.join(",")),
            }
        }
        _ => {
            let points: Vec<String> = (0..3).map(|_| point()).collect();
            format!("({})", points.join(","))
        }
    }
}
