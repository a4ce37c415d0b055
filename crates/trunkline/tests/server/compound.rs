//! Random values of compound types: arrays with several dimensions and lower bounds, nested
//! composite types, domains over these types, and ranges and multiranges, some of them over text.

use trunkline_aio::facade::random::Rng;

use crate::values::{self, chance, number, pick, quoted, short_text};

/// The types of the values in this file. Later on, attributes are added to the composite type
/// `s.shift` and removed from it.
pub(crate) const TYPES_SQL: &str = "\
create type s.mood as enum ('sad', 'ok', 'happy', 'o''k \"x\"');
alter type s.mood add value 'late' before 'ok';
create domain s.small as int4 check (value < 1000);
create domain s.smaller as s.small;
create domain s.list as int4[];
create type s.pair as (a int4, b text);
create domain s.couple as s.pair;
create type s.tree as (n int4, p s.pair, l s.pair[]);
create type s.textrange as range (subtype = text, multirange_type_name = s.textmultirange);
create domain s.span as s.textmultirange;
create type s.mix as (r s.textrange, d s.smaller, e s.mood, m int4multirange, t timestamptz, c s.couple);
create type s.shift as (a int2, b text, c int8);
create function s.plus(int4, s.mood) returns int4 language sql as 'select 1';
create collation s.\"a b\" from \"C\";
";

/// Changes the types `s.shift` and `s.mood` after values have been stored.
pub(crate) fn change_of_type(rng: &mut Rng) -> &'static str {
    match rng.below(5) {
        0 => "alter type s.shift add attribute if_d numeric;\n",
        1 => "alter type s.shift drop attribute if exists b;\n",
        2 => "alter type s.shift add attribute e s.pair[];\n",
        3 => "alter type s.mood add value if not exists 'between' after 'sad';\n",
        _ => "alter type s.mood rename value 'happy' to 'glad, \"very\"';\n",
    }
}

/// A value of one of the compound types, except arrays.
pub(crate) fn value(rng: &mut Rng, ty: &str) -> Option<String> {
    Some(match ty {
        "s.pair" | "s.couple" => format!("{}::{ty}", pair(rng)),
        "s.tree" => {
            format!("row({}, {}, array[{}])::s.tree", number(rng, 31), pair(rng), pair(rng))
        }
        "s.list" => array(rng, "int4"),
        "s.mix" => {
            let parts = ["s.textrange", "s.smaller", "s.mood", "int4multirange", "timestamptz"];
            let mut part =
                |ty: &&str| if chance(rng, 5) { "null".into() } else { values::value(rng, ty) };
            let parts: Vec<String> = parts.iter().map(&mut part).collect();
            format!("row({}, {})::s.mix", parts.join(", "), pair(rng))
        }
        "s.shift" => {
            // Set only the attributes that exist when the server executes this statement.
            let text = format!("\"x{}\"", rng.below(1 << 30));
            let (a, c, d) = (number(rng, 15), number(rng, 63), number(rng, 40));
            let json = format!(
                "{{\"a\": {a}, \"b\": {text}, \"c\": {c}, \"if_d\": {d}.50, \"e\": [{{\"a\": 1, \"b\": {text}}}]}}"
            );
            format!("jsonb_populate_record(null::s.shift, {})", quoted(&json))
        }
        "s.span" => format!("{}::s.span", quoted(&range(rng, "s.textmultirange"))),
        _ if ty.ends_with("range") => format!("{}::{ty}", quoted(&range(rng, ty))),
        _ => return None,
    })
}

fn range(rng: &mut Rng, ty: &str) -> String {
    if let Some(element) = ty.strip_suffix("multirange") {
        let parts: Vec<String> =
            (0..rng.below(4)).map(|_| range(rng, &format!("{element}range"))).collect();
        return format!("{{{}}}", parts.join(","));
    }
    if chance(rng, 8) {
        return "empty".into();
    }
    if ty == "s.textrange" {
        return text_range(rng);
    }
    let low = rng.below(1000) as i64 - 500;
    let high = low + rng.below(1000) as i64;
    let bound = |at: i64| match ty {
        "numrange" => format!("{at}.25"),
        "tstzrange" => format!("\"2001-01-01 00:00:00.5+{:02}\"", (500 - at) / 100),
        "daterange" => format!("20{:02}-01-{:02}", (at + 500) / 40 % 100, 1 + (at + 500) % 28),
        "tsrange" => {
            format!("\"20{:02}-01-01 00:00:{:02}\"", (at + 500) / 20 % 100, (at + 500) % 60)
        }
        _ => at.to_string(),
    };
    let (low, high) = (bound(low), bound(high));
    let low = if chance(rng, 6) { "" } else { &low };
    let high = if chance(rng, 6) { "" } else { &high };
    format!("{}{low},{high}{}", pick(rng, &["[", "("]), pick(rng, &["]", ")"]))
}

/// Bounds with characters that must be quoted.
fn text_range(rng: &mut Rng) -> String {
    let (one, other) = (short_text(rng, 30), short_text(rng, 30));
    let (low, high) = if one <= other { (one, other) } else { (other, one) };
    let bound = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\""));
    let low = if chance(rng, 6) { String::new() } else { bound(&low) };
    let high = if chance(rng, 6) { String::new() } else { bound(&high) };
    format!("{}{low},{high}{}", pick(rng, &["[", "("]), pick(rng, &["]", ")"]))
}

fn pair(rng: &mut Rng) -> String {
    let number = if chance(rng, 5) { "null".into() } else { number(rng, 31) };
    let text = if chance(rng, 5) { "null".into() } else { quoted(&short_text(rng, 40)) };
    format!("row({number}, {text})::s.pair")
}

/// A value of the array type over `element`.
pub(crate) fn array(rng: &mut Rng, element: &str) -> String {
    let ty = format!("{element}[]");
    match rng.below(16) {
        0 => return format!("'{{}}'::{ty}"),
        // Long enough to be TOASTed.
        1 => {
            let value = values::value(rng, element);
            let count = 1 + rng.below(400);
            return format!("(select array_agg({value}) from generate_series(1, {count}))::{ty}");
        }
        _ => {}
    }
    let dimensions = if chance(rng, 3) { 2 + rng.below(2) } else { 1 };
    let lengths: Vec<u64> = (0..dimensions).map(|_| 1 + rng.below(4)).collect();
    let plain = format!("{}::{ty}", nested(rng, element, &lengths));
    // The other half of the arrays get explicit lower bounds.
    if chance(rng, 2) {
        return plain;
    }
    let bounds: String = lengths
        .iter()
        .map(|&length| {
            let low = rng.below(2000) as i64 - 1000;
            format!("[{low}:{}]", low + length as i64 - 1)
        })
        .collect();
    format!("('{bounds}=' || ({plain})::text)::{ty}")
}

fn nested(rng: &mut Rng, element: &str, lengths: &[u64]) -> String {
    let Some((&length, inner)) = lengths.split_first() else {
        return if chance(rng, 6) {
            format!("null::{element}")
        } else {
            values::value(rng, element)
        };
    };
    let parts: Vec<String> = (0..length).map(|_| nested(rng, element, inner)).collect();
    format!("array[{}]", parts.join(", "))
}
