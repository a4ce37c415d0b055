//! Calls that were written in a syntax of the standard, such as `EXTRACT(year FROM t)`
//! (`get_func_sql_syntax`).

use trunkline_format::node_tree::{Node, NodeValue};

use super::deparse::Deparser;
use super::node_fields::{damaged, oid, unsupported};
use crate::error::SqlError;

impl Deparser<'_> {
    /// A call in the syntax of its function.
    pub(super) fn syntax_call(&self, node: &Node) -> Result<String, SqlError> {
        let function = self.names.catalog().procedure(oid(node, "funcid")?);
        let function = function.ok_or_else(|| damaged("function"))?;
        let nodes: Vec<&Node> = node.nodes("args").collect();
        let texts = nodes.iter().map(|argument| self.expression(argument, false));
        let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
        let operand = |at: usize| {
            let argument = nodes.get(at).ok_or_else(|| damaged("args"))?;
            self.operand(argument, false, node)
        };
        Ok(match (&*function.name, &*texts) {
            (b"timezone", [_, _]) => format!("({} AT TIME ZONE {})", operand(1)?, operand(0)?),
            (b"timezone", [_]) => format!("({} AT LOCAL)", operand(0)?),
            (b"extract", [_, value]) => {
                let field = nodes.first().and_then(|field| text_value(field));
                let field = field.ok_or_else(|| damaged("field of EXTRACT"))?;
                format!("EXTRACT({field} FROM {value})")
            }
            (b"overlaps", [a, b, c, d]) => format!("(({a}, {b}) OVERLAPS ({c}, {d}))"),
            (b"position", [text, part]) => format!("POSITION(({part}) IN ({text}))"),
            (b"overlay", [text, new, from]) => format!("OVERLAY({text} PLACING {new} FROM {from})"),
            (b"overlay", [text, new, from, count]) => {
                format!("OVERLAY({text} PLACING {new} FROM {from} FOR {count})")
            }
            (b"substring", [text, from]) => format!("SUBSTRING({text} FROM {from})"),
            (b"substring", [text, pattern, escape]) if function.source() != b"text_substr" => {
                match function.source() {
                    b"bytea_substr" | b"bitsubstr" => {
                        format!("SUBSTRING({text} FROM {pattern} FOR {escape})")
                    }
                    _ => format!("SUBSTRING({text} SIMILAR {pattern} ESCAPE {escape})"),
                }
            }
            (b"substring", [text, from, count]) => {
                format!("SUBSTRING({text} FROM {from} FOR {count})")
            }
            (b"normalize", [text]) => format!("NORMALIZE({text})"),
            (b"btrim", texts) => trim("BOTH", texts)?,
            (b"ltrim", texts) => trim("LEADING", texts)?,
            (b"rtrim", texts) => trim("TRAILING", texts)?,
            (b"pg_collation_for", [value]) => format!("COLLATION FOR ({value})"),
            (b"system_user", []) => "SYSTEM_USER".to_owned(),
            _ => return Err(unsupported("a call in SQL's own syntax")),
        })
    }
}

fn trim(side: &str, texts: &[String]) -> Result<String, SqlError> {
    match texts {
        [text] => Ok(format!("TRIM({side} FROM {text})")),
        [text, letters] => Ok(format!("TRIM({side} {letters} FROM {text})")),
        _ => Err(damaged("args")),
    }
}

/// The value of a constant of type text.
fn text_value(node: &Node) -> Option<String> {
    match node.field("constvalue") {
        Some(NodeValue::Datum(bytes)) => Some(str::from_utf8(bytes.get(4..)?).ok()?.to_owned()),
        _ => None,
    }
}
