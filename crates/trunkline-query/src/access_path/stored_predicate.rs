//! Predicates of partial indexes as bound expressions (`pg_index.indpred`).
//!
//! The catalog has a predicate as a node tree. Here it becomes the expression that the binder would make of
//! its text, without printing it: each operator is there by its OID, and each constant by its bytes, so nothing
//! depends on settings. Kinds of nodes that conditions of indexes rarely have are not read; such an index is
//! not used.

use trunkline_engine::catalog::ColumnInfo;
use trunkline_format::Oid;
use trunkline_format::node_tree::{Node, NodeValue};
use trunkline_format::varlena::Varlena;
use trunkline_sql::bound::{
    BooleanTest, CallForm, Column, Columns, Comparison, Expr, ExprKind, Quantifier, SqlType,
};
use trunkline_sql::catalog::SqlCatalog;

use crate::expression::BOOL;

/// Reads predicates of a table's indexes.
#[derive(Debug)]
pub(super) struct StoredPredicates<'a> {
    catalog: &'a SqlCatalog,
    /// The columns of the table, each at its place.
    columns: Columns,
    /// Text of the database has the same bytes in constants of a statement.
    is_utf8: bool,
}

impl<'a> StoredPredicates<'a> {
    pub(super) fn new(catalog: &'a SqlCatalog, table: &[ColumnInfo], encoding: i32) -> Self {
        let mut columns = Columns::default();
        for column in table {
            let name = String::from_utf8_lossy(&column.name).into();
            let ty = SqlType {
                oid: column.type_oid,
                modifier: column.modifier,
                collation: column.collation,
            };
            columns.add(Column { name, relation: None, ty, origin: None });
        }
        // SQL_ASCII has no conversion either.
        Self { catalog, columns, is_utf8: matches!(encoding, 0 | 6) }
    }

    /// The columns of the table. The number of each is its place.
    pub(super) fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The conditions of a predicate, which must all be true. `None` if it has a node that isn't read.
    pub(super) fn read(&self, predicate: &[u8]) -> Option<Vec<Expr>> {
        match NodeValue::parse(predicate).ok()? {
            NodeValue::Node(node) => Some(vec![self.expression(&node)?]),
            // PostgreSQL stores several conditions as a list.
            NodeValue::List(list) => {
                list.iter().map(|value| self.expression(value.node()?)).collect()
            }
            _ => None,
        }
    }

    fn expression(&self, node: &Node) -> Option<Expr> {
        let boolean = |kind| Some(Expr::new(kind, SqlType::new(BOOL)));
        let argument = || self.expression(node.child("arg")?).map(Box::new);
        match node.kind() {
            "VAR" => self.column(node),
            "CONST" => self.constant(node),
            "OPEXPR" => {
                let operator = oid(node, "opno")?;
                let function = self.catalog.operator(operator)?.function;
                let kind = ExprKind::Call {
                    function,
                    arguments: self.arguments(node, "args")?,
                    collation: oid(node, "inputcollid")?,
                    form: CallForm::Operator(operator),
                };
                let ty = typed(node, "opresulttype", None, "opcollid")?;
                (!node.flag("opretset")).then(|| Expr::new(kind, ty))
            }
            "FUNCEXPR" if !node.flag("funcretset") && !node.flag("funcvariadic") => {
                let form = match node.number("funcformat")? {
                    0 => CallForm::Function,
                    1 => CallForm::ExplicitCast,
                    2 => CallForm::ImplicitCast,
                    _ => return None,
                };
                let kind = ExprKind::Call {
                    function: oid(node, "funcid")?,
                    arguments: self.arguments(node, "args")?,
                    collation: oid(node, "inputcollid")?,
                    form,
                };
                Some(Expr::new(kind, typed(node, "funcresulttype", None, "funccollid")?))
            }
            "SCALARARRAYOPEXPR" => {
                let operator = oid(node, "opno")?;
                let mut arguments = self.arguments(node, "args")?.into_iter();
                let (left, array) = (arguments.next()?, arguments.next()?);
                boolean(ExprKind::ArrayComparison {
                    comparison: Comparison {
                        operator,
                        function: self.catalog.operator(operator)?.function,
                        collation: oid(node, "inputcollid")?,
                    },
                    quantifier: match node.flag("useOr") {
                        true => Quantifier::Any,
                        false => Quantifier::All,
                    },
                    left: Box::new(left),
                    array: Box::new(array),
                })
            }
            "BOOLEXPR" => {
                let mut arguments = self.arguments(node, "args")?;
                match node.text("boolop")? {
                    b"and" => boolean(ExprKind::And(arguments)),
                    b"or" => boolean(ExprKind::Or(arguments)),
                    b"not" => boolean(ExprKind::Not(Box::new(arguments.pop()?))),
                    _ => None,
                }
            }
            "NULLTEST" => {
                let (argument, is_row) = (argument()?, node.flag("argisrow"));
                match node.number("nulltesttype")? {
                    0 => boolean(ExprKind::IsNull { argument, is_row }),
                    1 => boolean(ExprKind::IsNotNull { argument, is_row }),
                    _ => None,
                }
            }
            "BOOLEANTEST" => {
                let test = match node.number("booltesttype")? {
                    0 => BooleanTest::IsTrue,
                    1 => BooleanTest::IsNotTrue,
                    2 => BooleanTest::IsFalse,
                    3 => BooleanTest::IsNotFalse,
                    4 => BooleanTest::IsUnknown,
                    5 => BooleanTest::IsNotUnknown,
                    _ => return None,
                };
                boolean(ExprKind::BooleanTest { argument: argument()?, test })
            }
            "RELABELTYPE" => {
                let modifier = Some("resulttypmod");
                let ty = typed(node, "resulttype", modifier, "resultcollid")?;
                Some(Expr::new(ExprKind::Relabel(argument()?), ty))
            }
            "COLLATE" | "COLLATEEXPR" => {
                let argument = argument()?;
                let ty = SqlType { collation: oid(node, "collOid")?, ..argument.ty };
                Some(Expr::new(ExprKind::Collate(argument), ty))
            }
            "ARRAY" | "ARRAYEXPR" if !node.flag("multidims") => {
                let elements = self.arguments(node, "elements")?;
                let kind = ExprKind::Array { elements, nested: false };
                Some(Expr::new(kind, typed(node, "array_typeid", None, "array_collid")?))
            }
            _ => None,
        }
    }

    fn arguments(&self, node: &Node, field: &str) -> Option<Vec<Expr>> {
        node.list(field).iter().map(|value| self.expression(value.node()?)).collect()
    }

    fn column(&self, node: &Node) -> Option<Expr> {
        // A predicate is about its table, which is the only one.
        if node.number("varno")? != 1 || node.number("varlevelsup")? != 0 {
            return None;
        }
        let place = u32::try_from(node.number("varattno")?).ok()?.checked_sub(1)?;
        let id = self.columns.find(place)?;
        let ty = typed(node, "vartype", Some("vartypmod"), "varcollid")?;
        (ty.oid == self.columns.get(id).ty.oid).then(|| Expr::new(ExprKind::Column(id), ty))
    }

    fn constant(&self, node: &Node) -> Option<Expr> {
        let ty = typed(node, "consttype", Some("consttypmod"), "constcollid")?;
        let value = match node.flag("constisnull") {
            true => None,
            false => Some(payload(node).filter(|value| self.is_utf8 || value.is_ascii())?),
        };
        Some(Expr::new(ExprKind::Constant(value), ty))
    }
}

/// The value of a constant, without a varlena header.
fn payload(node: &Node) -> Option<Box<[u8]>> {
    let Some(NodeValue::Datum(bytes)) = node.field("constvalue") else { return None };
    match node.number("constlen")? {
        -1 => {
            let mut room = Vec::new();
            Some(Varlena::parse(bytes).ok()?.payload(&mut room).ok()?.into())
        }
        -2 => Some(bytes.strip_suffix(b"\0")?.into()),
        // A value that is passed by value fills a Datum.
        length => Some(bytes.get(..usize::try_from(length).ok()?)?.into()),
    }
}

fn oid(node: &Node, field: &str) -> Option<Oid> {
    u32::try_from(node.number(field)?).ok().map(Oid)
}

fn typed(node: &Node, ty: &str, modifier: Option<&str>, collation: &str) -> Option<SqlType> {
    let modifier = match modifier {
        Some(field) => i32::try_from(node.number(field)?).ok()?,
        None => -1,
    };
    Some(SqlType { oid: oid(node, ty)?, modifier, collation: oid(node, collation)? })
}
