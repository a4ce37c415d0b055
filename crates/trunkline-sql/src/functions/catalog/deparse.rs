//! **Deparser**: stored expressions as SQL text, in PostgreSQL's words (`ruleutils.c`).
//!
//! ```text
//!   {OPEXPR :opno 521 :args ({VAR :varattno 1 …} {CONST :consttype 23 …})} ─▶ (id > 0)
//! ```
//!
//! Without `pretty`, every operator is in parentheses. With it, those that the precedence of the
//! operators makes unnecessary are left out. A kind of node that is not here is refused by its name.

use trunkline_engine::catalog::Procedure;
use trunkline_format::Oid;
use trunkline_format::node_tree::{Node, NodeValue};
use trunkline_format::text_output::{TextOptions, write_identifier};

use super::constant_text::{constant, object_number};
use super::node_fields::{child, damaged, oid, type_of, unsupported};
use super::query_names::QueryNames;
use crate::catalog::{Namespace, SearchPath, SqlCatalog, oids};
use crate::error::SqlError;
use crate::functions::call::CallSettings;

/// `EXPR_SUBLINK`: a subquery whose value is that of its only row.
const EXPRESSION_LINK: i64 = 4;

/// When less than this is left of the stack, printing continues on a new one.
pub(super) const STACK_RED_ZONE: usize = 64 << 10;

/// The size of a new stack.
pub(super) const STACK_SIZE: usize = 1 << 20;

/// `COERCE_EXPLICIT_CALL` and so on: how a call or a cast was written.
const EXPLICIT_CALL: i64 = 0;
const EXPLICIT_CAST: i64 = 1;
const IMPLICIT_CAST: i64 = 2;

/// Prints expressions over the columns of one relation.
#[derive(Clone, Copy)]
pub(crate) struct Deparser<'a> {
    /// How constants are printed.
    pub(super) options: TextOptions<'a>,
    pub(super) names: Namespace<'a>,
    /// The relation whose columns the expressions use; 0 if none.
    pub(super) relation: Oid,
    /// Whether unnecessary parentheses are left out.
    pub(super) pretty: bool,
    /// Whether the text is bound again: it names everything with its schema.
    pub(super) binding: bool,
    /// The query that the expressions are in.
    pub(super) query: Option<&'a QueryNames<'a>>,
    /// The indentation, if a query is laid out in lines.
    pub(super) indent: Option<i32>,
    /// The function whose body is printed, for the names of its arguments.
    pub(super) function: Option<&'a Procedure>,
}

impl<'a> Deparser<'a> {
    /// A deparser for texts that people read.
    pub(super) fn new(settings: &'a CallSettings, names: Namespace<'a>, pretty: bool) -> Self {
        let options = settings.text_options();
        let (relation, query) = (Oid(0), None);
        Self {
            options,
            names,
            relation,
            pretty,
            binding: false,
            query,
            indent: None,
            function: None,
        }
    }

    /// A deparser for texts that are bound again.
    pub(crate) fn for_binding(options: TextOptions<'a>, catalog: &'a SqlCatalog) -> Self {
        let names = Namespace::new(catalog, SearchPath::of_catalog());
        let (relation, query) = (Oid(0), None);
        Self {
            options,
            names,
            relation,
            pretty: false,
            binding: true,
            query,
            indent: None,
            function: None,
        }
    }
}

impl Deparser<'_> {
    /// The text of a stored value: an expression, or a list of expressions, which are separated by
    /// commas.
    pub(crate) fn stored(&self, text: &[u8]) -> Result<String, SqlError> {
        let tree = parse(text)?;
        match &tree {
            NodeValue::Node(node) if node.kind() == "PARTITIONBOUNDSPEC" => self.bound(node),
            NodeValue::Node(node) => self.expression(node, false),
            NodeValue::List(nodes) => self.list(nodes.iter().filter_map(NodeValue::node), false),
            _ => Err(damaged("not an expression")),
        }
    }

    /// The texts of the elements of a stored list of expressions.
    pub(crate) fn elements(&self, text: &[u8]) -> Result<Vec<String>, SqlError> {
        let tree = parse(text)?;
        let nodes = tree.elements().iter().filter_map(NodeValue::node);
        nodes.map(|node| self.expression(node, false)).collect()
    }

    /// A name as an identifier.
    pub(super) fn quoted(&self, name: &[u8]) -> String {
        let mut text = Vec::new();
        write_identifier(name, self.options.major, &mut text);
        self.names.catalog().encoding().decode(&text)
    }

    pub(super) fn constant(&self, node: &Node, label: Option<bool>) -> Result<String, SqlError> {
        if self.binding
            && let Some(text) = object_number(node)?
        {
            return Ok(text);
        }
        let text = constant(&self.options, self.names, node, label)?;
        if label.is_none() {
            return Ok(text);
        }
        let ty = self.names.catalog().data_type(oid(node, "consttype")?);
        let own = ty.map_or(Oid(0), |row| row.collation);
        Ok(text + &self.collation(Some(&oid(node, "constcollid")?), own)?)
    }

    pub(super) fn list<'n>(
        &self,
        nodes: impl Iterator<Item = &'n Node>,
        implicit: bool,
    ) -> Result<String, SqlError> {
        let texts: Result<Vec<String>, SqlError> =
            nodes.map(|node| self.expression(node, implicit)).collect();
        Ok(texts?.join(", "))
    }

    /// In parentheses unless they may be left out.
    pub(super) fn wrapped(&self, text: String) -> String {
        if self.pretty { text } else { format!("({text})") }
    }

    /// An operand, in parentheses if `parent` binds it otherwise (`get_rule_expr_paren`).
    pub(super) fn operand(
        &self,
        node: &Node,
        implicit: bool,
        parent: &Node,
    ) -> Result<String, SqlError> {
        let text = self.expression(node, implicit)?;
        let bare = !self.pretty || self.is_simple(node, parent);
        Ok(if bare { text } else { format!("({text})") })
    }

    /// An expression. `implicit` says whether casts that the server added are shown.
    pub(super) fn expression(&self, node: &Node, implicit: bool) -> Result<String, SqlError> {
        // Binding must see all casts.
        let implicit = implicit || self.binding;
        stacker::maybe_grow(STACK_RED_ZONE, STACK_SIZE, || self.print(node, implicit))
    }

    fn print(&self, node: &Node, implicit: bool) -> Result<String, SqlError> {
        match node.kind() {
            "VAR" => self.column(node),
            "CONST" => self.constant(node, Some(false)),
            "FUNCEXPR" => self.call(node, implicit),
            "OPEXPR" => self.operator_call(node),
            "DISTINCTEXPR" => {
                self.check_builtin(node)?;
                let [left, right] = self.operands(node)?;
                let left = self.operand(left, true, node)?;
                let right = self.operand(right, true, node)?;
                Ok(self.wrapped(format!("{left} IS DISTINCT FROM {right}")))
            }
            "NULLIFEXPR" => {
                self.check_builtin(node)?;
                Ok(format!("NULLIF({})", self.list(node.nodes("args"), true)?))
            }
            "COALESCE" | "COALESCEEXPR" => {
                Ok(format!("COALESCE({})", self.list(node.nodes("args"), true)?))
            }
            "MINMAX" | "MINMAXEXPR" => {
                let name = if node.number("op") == Some(0) { "GREATEST" } else { "LEAST" };
                Ok(format!("{name}({})", self.list(node.nodes("args"), true)?))
            }
            "SCALARARRAYOPEXPR" => {
                let [left, right] = self.operands(node)?;
                let operator = self.operator(oid(node, "opno")?)?;
                let word = if node.flag("useOr") { "ANY" } else { "ALL" };
                let left = self.operand(left, true, node)?;
                let mut text = self.operand(right, true, node)?;
                // Without a cast, the subquery would be one whose rows are compared.
                if right.kind() == "SUBLINK" && right.number("subLinkType") == Some(EXPRESSION_LINK)
                {
                    let targets = child(right, "subselect")?.nodes("targetList").next();
                    let ty = targets.and_then(|target| type_of(target.child("expr")?));
                    let ty = ty.ok_or_else(|| unsupported("a subquery that gives an array"))?;
                    text = format!("{text}::{}", self.names.format_type(ty, None));
                }
                Ok(self.wrapped(format!("{left} {operator} {word} ({text})")))
            }
            "BOOLEXPR" => self.boolean(node),
            "NULLTEST" => {
                let argument = child(node, "arg")?;
                let argument = self.operand(argument, true, node)?;
                let is_row = self.is_row(child(node, "arg")?);
                let test = match (node.number("nulltesttype"), node.flag("argisrow") || !is_row) {
                    (Some(0), true) => "IS NULL",
                    (Some(1), true) => "IS NOT NULL",
                    (Some(0), false) => "IS NOT DISTINCT FROM NULL",
                    _ => "IS DISTINCT FROM NULL",
                };
                Ok(self.wrapped(format!("{argument} {test}")))
            }
            "BOOLEANTEST" => {
                let argument = self.operand(child(node, "arg")?, false, node)?;
                let tests = ["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"];
                let test = node.number("booltesttype").and_then(|at| usize::try_from(at).ok());
                let test = test.and_then(|at| tests.get(at)).ok_or_else(|| damaged("test"))?;
                Ok(self.wrapped(format!("{argument} IS {test}")))
            }
            "ARRAY" | "ARRAYEXPR" => {
                let elements = self.list(node.nodes("elements"), true)?;
                if elements.is_empty() {
                    let ty = self.names.format_type(oid(node, "array_typeid")?, Some(-1));
                    return Ok(format!("ARRAY[]::{ty}"));
                }
                Ok(format!("ARRAY[{elements}]"))
            }
            "RELABELTYPE" => self.cast(node, "relabelformat", implicit),
            "COERCEVIAIO" => self.cast(node, "coerceformat", implicit),
            "ARRAYCOERCEEXPR" => self.cast(node, "coerceformat", implicit),
            "COERCETODOMAIN" => self.cast(node, "coercionformat", implicit),
            // The constraint of a domain is bound as a function of the value.
            "COERCETODOMAINVALUE" if self.binding => Ok("$1".to_owned()),
            "COERCETODOMAINVALUE" => Ok("VALUE".to_owned()),
            // An argument of a function in SQL.
            "PARAM" if node.number("paramkind") == Some(0) => {
                let number = node.number("paramid").ok_or_else(|| damaged("paramid"))?;
                Ok(self.argument_name(number).unwrap_or_else(|| format!("${number}")))
            }
            "CASE" | "CASEEXPR" if !self.pretty || self.query.is_some() => self.case(node),
            "SQLVALUEFUNCTION" => self.value_function(node),
            _ => self.query_expression(node, implicit),
        }
    }

    /// The name of an argument of the function. Where there are tables, it is printed with the
    /// function's name.
    fn argument_name(&self, number: i64) -> Option<String> {
        let function = self.function?;
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        let name = &function.parameters().get(at)?.name;
        if name.is_empty() {
            return None;
        }
        let mut levels = std::iter::successors(self.query, |level| level.outer);
        Some(match levels.any(|level| !level.tables.is_empty()) {
            true => format!("{}.{}", self.quoted(&function.name), self.quoted(name)),
            false => self.quoted(name),
        })
    }

    /// Whether an expression is a row.
    fn is_row(&self, node: &Node) -> bool {
        let catalog = self.names.catalog();
        type_of(node).is_some_and(|ty| ty == oids::RECORD || catalog.is_composite(ty))
    }

    /// A column of the relation.
    fn column(&self, node: &Node) -> Result<String, SqlError> {
        if let Some(names) = self.query {
            return Ok(self.query_column(names, node, false)?.text);
        }
        let number = node.number("varattno").unwrap_or_default();
        if node.number("varlevelsup") != Some(0) || node.number("varno") != Some(1) || number < 1 {
            return Err(unsupported("a column of another relation"));
        }
        let database = self.names.catalog().database();
        let relation = database.relation(self.relation).ok_or_else(|| damaged("relation"))?;
        let columns = database.columns(relation).map_err(|_| damaged("columns"))?;
        let at = usize::try_from(number - 1).map_err(|_| damaged("varattno"))?;
        let column = columns.get(at).ok_or_else(|| damaged("varattno"))?;
        Ok(self.quoted(&column.name))
    }

    fn operands<'n>(&self, node: &'n Node) -> Result<[&'n Node; 2], SqlError> {
        let nodes: Vec<&Node> = node.nodes("args").collect();
        nodes.try_into().map_err(|_| damaged("args"))
    }

    fn operator_call(&self, node: &Node) -> Result<String, SqlError> {
        let operator = self.operator(oid(node, "opno")?)?;
        let arguments: Vec<&Node> = node.nodes("args").collect();
        let text = match *arguments {
            [left, right] => {
                let left = self.operand(left, true, node)?;
                format!("{left} {operator} {}", self.operand(right, true, node)?)
            }
            [only] => format!("{operator} {}", self.operand(only, true, node)?),
            _ => return Err(damaged("args")),
        };
        Ok(self.wrapped(text))
    }

    /// An operator's name, which must stand for it in the search path.
    pub(super) fn operator(&self, operator: Oid) -> Result<String, SqlError> {
        let row = self.names.catalog().operator(operator).ok_or_else(|| damaged("operator"))?;
        let name = self.names.catalog().encoding().decode(&row.name);
        if !self.binding && self.names.is_operator_visible(operator) == Some(true) {
            return Ok(name);
        }
        let schema = self.names.catalog().database().schema(row.schema);
        let schema = schema.ok_or_else(|| damaged("schema"))?;
        Ok(format!("OPERATOR({}.{name})", self.quoted(&schema.name)))
    }

    /// Refuses to bind an operator that the text doesn't show, unless it is one of the server's own,
    /// which the binder takes.
    fn check_builtin(&self, node: &Node) -> Result<(), SqlError> {
        let row = self.names.catalog().operator(oid(node, "opno")?);
        let row = row.ok_or_else(|| damaged("operator"))?;
        match self.binding && row.schema != oids::PG_CATALOG {
            true => Err(unsupported("an operator of another schema in this place")),
            false => Ok(()),
        }
    }

    fn boolean(&self, node: &Node) -> Result<String, SqlError> {
        let arguments: Vec<&Node> = node.nodes("args").collect();
        let texts: Result<Vec<String>, SqlError> =
            arguments.iter().map(|argument| self.operand(argument, false, node)).collect();
        let texts = texts?;
        let text = match node.text("boolop") {
            Some(b"and") => texts.join(" AND "),
            Some(b"or") => texts.join(" OR "),
            Some(b"not") => format!("NOT {}", texts.join("")),
            _ => return Err(damaged("boolop")),
        };
        Ok(self.wrapped(text))
    }

    /// A call, or a cast by a function.
    fn call(&self, node: &Node, implicit: bool) -> Result<String, SqlError> {
        let arguments: Vec<&Node> = node.nodes("args").collect();
        match (node.number("funcformat"), &*arguments) {
            (Some(IMPLICIT_CAST), [first, ..]) if !implicit => self.operand(first, false, node),
            (Some(EXPLICIT_CAST | IMPLICIT_CAST), [first, rest @ ..]) => {
                let modifier = match (rest.first(), rest.len()) {
                    (Some(length), 1 | 2) => length_of(length),
                    _ => -1,
                };
                self.coercion(first, oid(node, "funcresulttype")?, modifier, node)
            }
            (format, _) if format == Some(EXPLICIT_CALL) || self.binding => {
                let function = oid(node, "funcid")?;
                let name = self.function(function)?;
                let mut texts = Vec::new();
                for (at, argument) in arguments.iter().enumerate() {
                    if argument.kind() == "NAMEDARGEXPR" {
                        return Err(unsupported("a named argument"));
                    }
                    let text = self.expression(argument, true)?;
                    let variadic = node.flag("funcvariadic") && at + 1 == arguments.len();
                    texts.push(if variadic { format!("VARIADIC {text}") } else { text });
                }
                Ok(format!("{name}({})", texts.join(", ")))
            }
            _ => self.syntax_call(node),
        }
    }

    /// A function's name. If another schema has functions of the same name, it would depend on the
    /// types of the arguments whether the schema is needed.
    pub(super) fn function(&self, function: Oid) -> Result<String, SqlError> {
        let catalog = self.names.catalog();
        let row = catalog.procedure(function).ok_or_else(|| damaged("function"))?;
        let name = self.quoted(&row.name);
        if !self.binding && catalog.has_rival(&row.name, row.schema, self.names.path()) {
            return Err(unsupported(&format!("a call of function {name}, which is ambiguous,")));
        }
        if !self.binding && self.names.is_function_visible(function) == Some(true) {
            return Ok(name);
        }
        let schema = catalog.database().schema(row.schema).ok_or_else(|| damaged("schema"))?;
        Ok(format!("{}.{name}", self.quoted(&schema.name)))
    }

    /// A cast that isn't a function call.
    fn cast(&self, node: &Node, format: &str, implicit: bool) -> Result<String, SqlError> {
        let argument = child(node, "arg")?;
        if node.number(format) == Some(IMPLICIT_CAST) && !implicit {
            return self.operand(argument, false, node);
        }
        let modifier = node.number("resulttypmod").unwrap_or(-1);
        let modifier = i32::try_from(modifier).map_err(|_| damaged("resulttypmod"))?;
        self.coercion(argument, oid(node, "resulttype")?, modifier, node)
    }

    /// `x::type` (`get_coercion_expr`).
    fn coercion(
        &self,
        argument: &Node,
        ty: Oid,
        modifier: i32,
        parent: &Node,
    ) -> Result<String, SqlError> {
        let is_plain = argument.kind() == "CONST"
            && oid(argument, "consttype")? == ty
            && argument.number("consttypmod") == Some(-1);
        let text = if is_plain {
            self.constant(argument, None)?
        } else {
            let text = self.operand(argument, false, parent)?;
            self.wrapped(text)
        };
        Ok(format!("{text}::{}", self.names.format_type(ty, Some(modifier))))
    }

    fn case(&self, node: &Node) -> Result<String, SqlError> {
        let operand = node.child("arg");
        // In a query that is laid out, each branch has a line.
        let line = |more: i32| match self.indent {
            Some(indent) => {
                let spaces = usize::try_from(indent + more).unwrap_or_default();
                format!("\n{}", " ".repeat(spaces))
            }
            None => " ".to_owned(),
        };
        let first = if self.indent.is_some() { line(0) } else { String::new() };
        let (branch, last) = (line(4), line(0));
        let indent = self.indent.map(|indent| indent + 4);
        let this = Deparser { indent, ..*self };
        let mut text = format!("{first}CASE");
        if let Some(operand) = operand {
            text = format!("{text} {}", this.expression(operand, true)?);
        }
        for arm in node.nodes("args") {
            let condition = child(arm, "expr")?;
            // `CASE x WHEN y` is stored as a comparison with a placeholder.
            let shown = match operand {
                Some(_) if condition.kind() == "OPEXPR" => {
                    self.check_builtin(condition)?;
                    self.operands(condition)?[1]
                }
                Some(_) => return Err(unsupported("this CASE")),
                None => condition,
            };
            let shown = this.expression(shown, false)?;
            let result = this.expression(child(arm, "result")?, true)?;
            text = format!("{text}{branch}WHEN {shown} THEN {result}");
        }
        let otherwise = this.expression(child(node, "defresult")?, true)?;
        Ok(format!("{text}{branch}ELSE {otherwise}{last}END"))
    }

    fn value_function(&self, node: &Node) -> Result<String, SqlError> {
        const NAMES: [&str; 15] = [
            "CURRENT_DATE",
            "CURRENT_TIME",
            "CURRENT_TIME",
            "CURRENT_TIMESTAMP",
            "CURRENT_TIMESTAMP",
            "LOCALTIME",
            "LOCALTIME",
            "LOCALTIMESTAMP",
            "LOCALTIMESTAMP",
            "CURRENT_ROLE",
            "CURRENT_USER",
            "USER",
            "SESSION_USER",
            "CURRENT_CATALOG",
            "CURRENT_SCHEMA",
        ];
        let number = node.number("op").and_then(|op| usize::try_from(op).ok());
        let name = number.and_then(|op| NAMES.get(op)).ok_or_else(|| damaged("op"))?;
        match node.number("typmod") {
            Some(precision) if precision >= 0 => Ok(format!("{name}({precision})")),
            _ => Ok((*name).to_owned()),
        }
    }

    /// The bound of a partition.
    fn bound(&self, node: &Node) -> Result<String, SqlError> {
        if node.flag("is_default") {
            return Ok("DEFAULT".to_owned());
        }
        match node.text("strategy") {
            Some(b"h") => {
                let number = |field| node.number(field).ok_or_else(|| damaged(field));
                let (modulus, remainder) = (number("modulus")?, number("remainder")?);
                Ok(format!("FOR VALUES WITH (modulus {modulus}, remainder {remainder})"))
            }
            Some(b"l") => {
                let values = node.nodes("listdatums").map(|value| self.constant(value, None));
                let values: Vec<String> = values.collect::<Result<_, _>>()?;
                Ok(format!("FOR VALUES IN ({})", values.join(", ")))
            }
            Some(b"r") => {
                let lower = self.range_bound(node, "lowerdatums")?;
                Ok(format!("FOR VALUES FROM {lower} TO {}", self.range_bound(node, "upperdatums")?))
            }
            _ => Err(damaged("strategy")),
        }
    }

    fn range_bound(&self, node: &Node, field: &str) -> Result<String, SqlError> {
        let values = node.nodes(field).map(|datum| match datum.number("kind") {
            Some(-1) => Ok("MINVALUE".to_owned()),
            Some(1) => Ok("MAXVALUE".to_owned()),
            _ => self.constant(child(datum, "value")?, None),
        });
        let values: Vec<String> = values.collect::<Result<_, SqlError>>()?;
        Ok(format!("({})", values.join(", ")))
    }

    /// Whether an operand needs no parentheses below `parent` (`isSimpleNode`).
    fn is_simple(&self, node: &Node, parent: &Node) -> bool {
        match node.kind() {
            "RELABELTYPE" | "COERCEVIAIO" | "ARRAYCOERCEEXPR" | "COERCETODOMAIN" => {
                node.child("arg").is_none_or(|argument| self.is_simple(argument, node))
            }
            "OPEXPR" if parent.kind() == "OPEXPR" => self.binds_tighter(node, parent),
            "OPEXPR" | "NULLTEST" | "BOOLEANTEST" | "DISTINCTEXPR" | "SUBLINK" => {
                parent.kind() == "BOOLEXPR" || has_parentheses(parent)
            }
            "BOOLEXPR" if parent.kind() == "BOOLEXPR" => {
                let outer = parent.text("boolop").unwrap_or_default();
                match node.text("boolop") {
                    Some(b"or") => outer == b"or",
                    _ => outer == b"and" || outer == b"or",
                }
            }
            "BOOLEXPR" => has_parentheses(parent),
            "FIELDSELECT" => parent.kind() != "FIELDSELECT",
            "SCALARARRAYOPEXPR" | "COLLATE" | "COLLATEEXPR" | "ROWCOMPARE" | "ROWCOMPAREEXPR" => {
                false
            }
            _ => true,
        }
    }

    /// Whether an arithmetic operator below another one needs no parentheses.
    fn binds_tighter(&self, node: &Node, parent: &Node) -> bool {
        let symbol = |node: &Node| {
            let operator = self.names.catalog().operator(oid(node, "opno").ok()?)?;
            (node.nodes("args").count() == 2 && operator.name.len() == 1)
                .then(|| operator.name.first().copied())?
        };
        let rank = |symbol: u8| match symbol {
            b'+' | b'-' => Some(0),
            b'*' | b'/' | b'%' => Some(1),
            _ => None,
        };
        let (own, outer) = (symbol(node).and_then(rank), symbol(parent).and_then(rank));
        let (Some(own), Some(outer)) = (own, outer) else { return false };
        // Of two operators with the same rank, the left one comes first.
        own > outer || (own == outer && parent.nodes("args").next() == Some(node))
    }
}

/// Whether a node puts its operands between parentheses or words of its own.
fn has_parentheses(parent: &Node) -> bool {
    match parent.kind() {
        "FUNCEXPR" => parent.number("funcformat") == Some(EXPLICIT_CALL),
        "ARRAY" | "ARRAYEXPR" | "COALESCE" | "COALESCEEXPR" | "MINMAX" | "MINMAXEXPR"
        | "NULLIFEXPR" | "CASE" | "CASEEXPR" | "AGGREF" | "WINDOWFUNC" | "GROUPINGFUNC"
        | "SUBSCRIPTINGREF" | "ROW" | "ROWEXPR" => true,
        _ => false,
    }
}

/// The modifier that a length coercion applies: the constant that is its second argument.
fn length_of(argument: &Node) -> i32 {
    let is_int4 = argument.kind() == "CONST"
        && argument.number("consttype") == Some(i64::from(oids::INT4.0))
        && !argument.flag("constisnull");
    match argument.field("constvalue") {
        Some(NodeValue::Datum(bytes)) if is_int4 => {
            bytes.first_chunk().map_or(-1, |bytes| i32::from_le_bytes(*bytes))
        }
        _ => -1,
    }
}

/// Reads a stored tree.
pub(super) fn parse(text: &[u8]) -> Result<NodeValue, SqlError> {
    NodeValue::parse(text).map_err(|error| damaged(&error.to_string()))
}

/// Whether an index expression is printed without parentheses (`looks_like_function`).
pub(super) fn looks_like_function(node: &Node) -> bool {
    match node.kind() {
        "FUNCEXPR" => matches!(node.number("funcformat"), Some(EXPLICIT_CALL | 3)),
        "COALESCE" | "COALESCEEXPR" | "MINMAX" | "MINMAXEXPR" | "NULLIFEXPR"
        | "SQLVALUEFUNCTION" => true,
        _ => false,
    }
}
