//! **Prints a tree as SQL with every pair of parentheses**, so that tests can show how a statement was
//! parsed, and a server can confirm it.
//!
//! `a + b * c` is printed as `(a + (b * c))`.

use std::fmt::Display;

use super::{
    Alias, ColumnDefinition, Constant, DistinctClause, Expression, ExpressionKind, FrameBound,
    FunctionCall, GroupingElement, IndirectionStep, JoinCondition, LockStrength, LockWaitPolicy,
    Name, OperatorName, Over, QualifiedName, Quantifier, RangeFunctionItem, RangeVariable,
    SelectBody, SelectCore, SelectStatement, SortBy, SortDirection, SqlValueFunction, Statement,
    SubLinkKind, TableReference, TypeModifierValue, TypeName, WindowDefinition,
};

/// A statement. Only queries are printed as SQL.
pub(super) fn statement(statement: &Statement) -> String {
    match statement {
        Statement::Select(query) => select(query),
        other => format!("{other:?}"),
    }
}

fn list<T>(items: &[T], item: impl Fn(&T) -> String) -> String {
    items.iter().map(item).collect::<Vec<_>>().join(", ")
}

fn some<T>(item: Option<&T>, prefix: &str, text: impl Fn(&T) -> String) -> String {
    item.map_or(String::new(), |item| format!("{prefix}{}", text(item)))
}

fn when(condition: bool, text: &str) -> &str {
    if condition { text } else { "" }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn name(name: &Name) -> String {
    let plain = name.text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if plain && super::keyword::keyword(&name.text).is_none() {
        name.text.clone()
    } else {
        format!("\"{}\"", name.text.replace('"', "\"\""))
    }
}

fn qualified(qualified: &QualifiedName) -> String {
    qualified.parts.iter().map(name).collect::<Vec<_>>().join(".")
}

fn operator(operator: &OperatorName) -> String {
    if operator.qualification.is_empty() {
        return operator.symbol.clone();
    }
    let schemas: String =
        operator.qualification.iter().map(|schema| format!("{}.", name(schema))).collect();
    format!("OPERATOR({schemas}{})", operator.symbol)
}

fn type_name(type_name: &TypeName) -> String {
    let bounds: String = type_name
        .array_bounds
        .iter()
        .map(|bound| format!("[{}]", some(bound.as_ref(), "", ToString::to_string)))
        .collect();
    let modifiers = list(&type_name.modifiers, |modifier| match &modifier.value {
        TypeModifierValue::Integer(value) => value.to_string(),
        TypeModifierValue::Text(text) => quoted(text),
    });
    let modifiers = if modifiers.is_empty() { String::new() } else { format!("({modifiers})") };
    format!("{}{}{modifiers}{bounds}", when(type_name.setof, "setof "), qualified(&type_name.name))
}

fn constant(constant: &Constant) -> String {
    match constant {
        Constant::Null => "NULL".to_owned(),
        Constant::Boolean(value) => value.to_string(),
        Constant::Integer(value) if *value < 0 => format!("({value})"),
        Constant::Integer(value) => value.to_string(),
        Constant::Float(text) if text.starts_with('-') => format!("({text})"),
        Constant::Float(text) => text.clone(),
        Constant::String(text) => quoted(text),
        Constant::BitString(text) => {
            let (prefix, digits) = text.split_at(1);
            format!("{prefix}'{digits}'")
        }
    }
}

fn expressions(items: &[Expression]) -> String {
    list(items, expression)
}

/// An expression.
pub(super) fn expression(of: &Expression) -> String {
    let not = |negated: &bool| when(*negated, "NOT ").to_owned();
    match &of.kind {
        ExpressionKind::ColumnReference(column) => {
            let mut fields: Vec<String> = column.fields.iter().map(name).collect();
            fields.extend(column.star.then(|| "*".to_owned()));
            fields.join(".")
        }
        ExpressionKind::Parameter(number) => format!("${number}"),
        ExpressionKind::Constant(value) => constant(value),
        ExpressionKind::Indirection { base, steps } => indirection(base, steps),
        ExpressionKind::Operator { operator: symbol, left, right } => {
            let left = some(left.as_deref(), "", |left| format!("{} ", expression(left)));
            format!("({left}{} {})", operator(symbol), expression(right))
        }
        ExpressionKind::ArrayComparison { operator: symbol, quantifier, left, right } => format!(
            "({} {} {}({}))",
            expression(left),
            operator(symbol),
            quantified(*quantifier),
            expression(right)
        ),
        ExpressionKind::Distinct { negated, left, right } => {
            format!("({} IS {}DISTINCT FROM {})", expression(left), not(negated), expression(right))
        }
        ExpressionKind::NullIf { left, right } => {
            format!("NULLIF({}, {})", expression(left), expression(right))
        }
        ExpressionKind::In { negated, left, list } => {
            format!("({} {}IN ({}))", expression(left), not(negated), expressions(list))
        }
        ExpressionKind::Between { negated, symmetric, operand, low, high } => format!(
            "({} {}BETWEEN {}{} AND {})",
            expression(operand),
            not(negated),
            when(*symmetric, "SYMMETRIC "),
            expression(low),
            expression(high)
        ),
        ExpressionKind::And(items) => joined(items, " AND "),
        ExpressionKind::Or(items) => joined(items, " OR "),
        ExpressionKind::Not(argument) => format!("(NOT {})", expression(argument)),
        ExpressionKind::NullTest { negated, argument } => {
            format!("({} IS {}NULL)", expression(argument), not(negated))
        }
        ExpressionKind::BooleanTest { negated, value, argument } => {
            let value = value.map_or("UNKNOWN".to_owned(), |value| value.to_string());
            format!("({} IS {}{value})", expression(argument), not(negated))
        }
        ExpressionKind::FunctionCall(call) => function(call),
        ExpressionKind::SqlValueFunction { function, precision } => {
            format!(
                "{}{}",
                value_function(*function),
                some(precision.as_ref(), "", |digits| format!("({digits})"))
            )
        }
        ExpressionKind::TypeCast { argument, type_name: target } => {
            format!("({})::{}", expression(argument), type_name(target))
        }
        ExpressionKind::Collate { argument, collation } => {
            format!("({} COLLATE {})", expression(argument), qualified(collation))
        }
        ExpressionKind::Case { argument, branches, default } => {
            let branches: String = branches
                .iter()
                .map(|branch| {
                    let condition = expression(&branch.condition);
                    format!(" WHEN {condition} THEN {}", expression(&branch.result))
                })
                .collect();
            let argument = some(argument.as_deref(), " ", expression);
            format!(
                "CASE{argument}{branches}{} END",
                some(default.as_deref(), " ELSE ", expression)
            )
        }
        ExpressionKind::Coalesce(items) => format!("COALESCE({})", expressions(items)),
        ExpressionKind::Greatest(items) => format!("GREATEST({})", expressions(items)),
        ExpressionKind::Least(items) => format!("LEAST({})", expressions(items)),
        ExpressionKind::Row { explicit, fields } => {
            format!("{}({})", when(*explicit, "ROW"), expressions(fields))
        }
        ExpressionKind::Array(items) => format!("ARRAY{}", elements(items)),
        ExpressionKind::SubLink { kind, query } => sub_link(kind, query),
        ExpressionKind::Grouping(items) => format!("GROUPING({})", expressions(items)),
    }
}

fn joined(items: &[Expression], word: &str) -> String {
    format!("({})", items.iter().map(expression).collect::<Vec<_>>().join(word))
}

fn elements(items: &[Expression]) -> String {
    let items = list(items, |item| match &item.kind {
        // Whether the word ARRAY was written does not show in the tree.
        ExpressionKind::Array(inner) => elements(inner),
        _ => expression(item),
    });
    format!("[{items}]")
}

fn indirection(base: &Expression, steps: &[IndirectionStep]) -> String {
    let mut text = match &base.kind {
        // Parentheses would make a column reference of `t.a[1]` another one.
        ExpressionKind::ColumnReference(_)
            if matches!(
                steps.first(),
                Some(IndirectionStep::Subscript(_) | IndirectionStep::Slice { .. })
            ) =>
        {
            expression(base)
        }
        _ => format!("({})", expression(base)),
    };
    for step in steps {
        text += &match step {
            IndirectionStep::Field(field) => format!(".{}", name(field)),
            IndirectionStep::Star(_) => ".*".to_owned(),
            IndirectionStep::Subscript(index) => format!("[{}]", expression(index)),
            IndirectionStep::Slice { lower, upper, .. } => format!(
                "[{}:{}]",
                some(lower.as_deref(), "", expression),
                some(upper.as_deref(), "", expression)
            ),
        };
    }
    text
}

fn quantified(quantifier: Quantifier) -> &'static str {
    match quantifier {
        Quantifier::Any => "ANY",
        Quantifier::All => "ALL",
    }
}

fn sub_link(kind: &SubLinkKind, query: &SelectStatement) -> String {
    let query = select(query);
    match kind {
        SubLinkKind::Exists => format!("EXISTS ({query})"),
        SubLinkKind::Array => format!("ARRAY({query})"),
        SubLinkKind::Scalar => format!("({query})"),
        SubLinkKind::In { negated, left } => {
            format!("({} {}IN ({query}))", expression(left), when(*negated, "NOT "))
        }
        SubLinkKind::Quantified { quantifier, left, operator: symbol } => format!(
            "({} {} {} ({query}))",
            expression(left),
            operator(symbol),
            quantified(*quantifier)
        ),
    }
}

fn value_function(function: SqlValueFunction) -> &'static str {
    match function {
        SqlValueFunction::CurrentDate => "CURRENT_DATE",
        SqlValueFunction::CurrentTime => "CURRENT_TIME",
        SqlValueFunction::CurrentTimestamp => "CURRENT_TIMESTAMP",
        SqlValueFunction::LocalTime => "LOCALTIME",
        SqlValueFunction::LocalTimestamp => "LOCALTIMESTAMP",
        SqlValueFunction::CurrentRole => "CURRENT_ROLE",
        SqlValueFunction::CurrentUser => "CURRENT_USER",
        SqlValueFunction::User => "USER",
        SqlValueFunction::SessionUser => "SESSION_USER",
        SqlValueFunction::CurrentCatalog => "CURRENT_CATALOG",
        SqlValueFunction::CurrentSchema => "CURRENT_SCHEMA",
    }
}

fn function(call: &FunctionCall) -> String {
    let mut arguments: Vec<String> = call
        .arguments
        .iter()
        .map(|argument| {
            let name = some(argument.name.as_ref(), "", |label| format!("{} => ", name(label)));
            name + &expression(&argument.value)
        })
        .collect();
    if let (true, Some(last)) = (call.variadic, arguments.last_mut()) {
        last.insert_str(0, "VARIADIC ");
    }
    let order_by = order_by(&call.order_by);
    let inside = if call.within_group { "" } else { order_by.as_str() };
    let mut text = format!(
        "{}({}{}{}{inside})",
        qualified(&call.name),
        when(call.distinct, "DISTINCT "),
        when(call.star, "*"),
        arguments.join(", "),
    );
    if call.within_group {
        text += &format!(" WITHIN GROUP ({})", order_by.trim_start());
    }
    if let Some(filter) = &call.filter {
        text += &format!(" FILTER (WHERE {})", expression(filter));
    }
    match &call.over {
        Some(Over::Name(window)) => text += &format!(" OVER {}", name(window)),
        Some(Over::Window(definition)) => text += &format!(" OVER {}", window(definition)),
        None => {}
    }
    text
}

fn order_by(keys: &[SortBy]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let keys = list(keys, |key| {
        let direction = match &key.direction {
            SortDirection::Default => String::new(),
            SortDirection::Ascending => " ASC".to_owned(),
            SortDirection::Descending => " DESC".to_owned(),
            SortDirection::Using(symbol) => format!(" USING {}", operator(symbol)),
        };
        let nulls = match key.nulls_first {
            None => "",
            Some(true) => " NULLS FIRST",
            Some(false) => " NULLS LAST",
        };
        format!("{}{direction}{nulls}", expression(&key.expression))
    });
    format!(" ORDER BY {keys}")
}

fn window(definition: &WindowDefinition) -> String {
    let mut parts: Vec<String> = definition.reference.iter().map(name).collect();
    if !definition.partition_by.is_empty() {
        parts.push(format!("PARTITION BY {}", expressions(&definition.partition_by)));
    }
    if !definition.order_by.is_empty() {
        parts.push(order_by(&definition.order_by).trim_start().to_owned());
    }
    if let Some(frame) = &definition.frame {
        let units = format!("{:?}", frame.units).to_uppercase();
        let exclusion = match format!("{:?}", frame.exclusion).as_str() {
            "None" => "NO OTHERS".to_owned(),
            "CurrentRow" => "CURRENT ROW".to_owned(),
            other => other.to_uppercase(),
        };
        let (start, end) = (bound(&frame.start), bound(&frame.end));
        parts.push(format!("{units} BETWEEN {start} AND {end} EXCLUDE {exclusion}"));
    }
    format!("({})", parts.join(" "))
}

fn bound(bound: &FrameBound) -> String {
    match bound {
        FrameBound::UnboundedPreceding => "UNBOUNDED PRECEDING".to_owned(),
        FrameBound::Preceding(offset) => format!("{} PRECEDING", expression(offset)),
        FrameBound::CurrentRow => "CURRENT ROW".to_owned(),
        FrameBound::Following(offset) => format!("{} FOLLOWING", expression(offset)),
        FrameBound::UnboundedFollowing => "UNBOUNDED FOLLOWING".to_owned(),
    }
}

/// A query.
fn select(query: &SelectStatement) -> String {
    let mut text = String::new();
    if let Some(with) = &query.with {
        let ctes = list(&with.ctes, |cte| {
            let materialized = match cte.materialized {
                None => "",
                Some(true) => "MATERIALIZED ",
                Some(false) => "NOT MATERIALIZED ",
            };
            let query = select(&cte.query);
            let search = cte.search.as_ref().map_or_else(String::new, |search| {
                let order = if search.breadth { "BREADTH" } else { "DEPTH" };
                let columns = list(&search.columns, |name| name.text.clone());
                format!(" SEARCH {order} FIRST BY {columns} SET {}", search.sequence.text)
            });
            let cycle = cte.cycle.as_ref().map_or_else(String::new, |cycle| {
                let columns = list(&cycle.columns, |name| name.text.clone());
                let values = cycle.values.as_ref().map_or_else(String::new, |(value, default)| {
                    format!(" TO {} DEFAULT {}", expression(value), expression(default))
                });
                let (mark, path) = (&cycle.mark.text, &cycle.path.text);
                format!(" CYCLE {columns} SET {mark}{values} USING {path}")
            });
            format!("{} AS {materialized}({query}){search}{cycle}", alias(&cte.alias))
        });
        text += &format!("WITH {}{ctes} ", when(with.recursive, "RECURSIVE "));
    }
    text += &match &query.body {
        SelectBody::Select(core) => core_text(core),
        SelectBody::Values(rows) => {
            format!("VALUES {}", list(rows, |row| format!("({})", expressions(&row.columns))))
        }
        SelectBody::SetOperation { operation, all, left, right } => format!(
            "({}) {}{} ({})",
            select(left),
            format!("{operation:?}").to_uppercase(),
            when(*all, " ALL"),
            select(right)
        ),
    };
    text += &order_by(&query.order_by);
    text += &some(query.offset.as_ref(), " OFFSET ", expression);
    if query.with_ties {
        let count = some(query.limit.as_ref(), "", expression);
        text += &format!(" FETCH FIRST ({count}) ROWS WITH TIES");
    } else {
        text += &some(query.limit.as_ref(), " LIMIT ", expression);
    }
    for locking in &query.locking {
        text += match locking.strength {
            LockStrength::KeyShare => " FOR KEY SHARE",
            LockStrength::Share => " FOR SHARE",
            LockStrength::NoKeyUpdate => " FOR NO KEY UPDATE",
            LockStrength::Update => " FOR UPDATE",
        };
        if !locking.relations.is_empty() {
            text += &format!(" OF {}", list(&locking.relations, qualified));
        }
        text += match locking.wait_policy {
            LockWaitPolicy::Block => "",
            LockWaitPolicy::Skip => " SKIP LOCKED",
            LockWaitPolicy::Error => " NOWAIT",
        };
    }
    text
}

fn core_text(core: &SelectCore) -> String {
    let mut text = "SELECT ".to_owned();
    text += &match &core.distinct {
        DistinctClause::All => String::new(),
        DistinctClause::Distinct => "DISTINCT ".to_owned(),
        DistinctClause::On(keys) => format!("DISTINCT ON ({}) ", expressions(keys)),
    };
    text += &list(&core.targets, |target| {
        format!("{}{}", expression(&target.expression), some(target.name.as_ref(), " AS ", name))
    });
    if !core.from.is_empty() {
        text += &format!(" FROM {}", list(&core.from, table));
    }
    text += &some(core.where_clause.as_ref(), " WHERE ", expression);
    if !core.group_by.is_empty() {
        let distinct = when(core.group_distinct, "DISTINCT ");
        text += &format!(" GROUP BY {distinct}{}", list(&core.group_by, grouping));
    }
    text += &some(core.having.as_ref(), " HAVING ", expression);
    if !core.windows.is_empty() {
        let windows = list(&core.windows, |definition| {
            format!("{} AS {}", some(definition.name.as_ref(), "", name), window(definition))
        });
        text += &format!(" WINDOW {windows}");
    }
    text.trim_end().to_owned()
}

fn grouping(element: &GroupingElement) -> String {
    match element {
        GroupingElement::Expression(key) => expression(key),
        GroupingElement::Empty(_) => "()".to_owned(),
        GroupingElement::Rollup(keys, _) => format!("ROLLUP ({})", expressions(keys)),
        GroupingElement::Cube(keys, _) => format!("CUBE ({})", expressions(keys)),
        GroupingElement::Sets(sets, _) => format!("GROUPING SETS ({})", list(sets, grouping)),
    }
}

fn alias(alias: &Alias) -> String {
    let columns = if alias.columns.is_empty() {
        String::new()
    } else {
        format!(" ({})", list(&alias.columns, name))
    };
    format!("{}{columns}", name(&alias.name))
}

fn as_alias(of: Option<&Alias>) -> String {
    some(of, " AS ", alias)
}

fn relation(relation: &RangeVariable) -> String {
    let only = when(relation.only, "ONLY ");
    format!("{only}{}{}", qualified(&relation.name), as_alias(relation.alias.as_ref()))
}

fn definitions(columns: &[ColumnDefinition]) -> String {
    let columns = list(columns, |column| {
        let collation = some(column.collation.as_ref(), " COLLATE ", qualified);
        format!("{} {}{collation}", name(&column.name), type_name(&column.type_name))
    });
    format!(" ({columns})")
}

fn function_item(item: &RangeFunctionItem) -> String {
    let columns = when(!item.columns.is_empty(), " AS").to_owned();
    let definitions =
        if item.columns.is_empty() { String::new() } else { definitions(&item.columns) };
    format!("{}{columns}{definitions}", expression(&item.function))
}

fn table(reference: &TableReference) -> String {
    let lateral = |lateral: bool| when(lateral, "LATERAL ");
    match reference {
        TableReference::Relation(of) => relation(of),
        TableReference::Subselect(of) => {
            let alias = as_alias(of.alias.as_ref());
            format!("{}({}){alias}", lateral(of.lateral), select(&of.query))
        }
        TableReference::Function(of) => {
            let functions = list(&of.functions, function_item);
            let functions =
                if of.rows_from { format!("ROWS FROM ({functions})") } else { functions };
            let ordinality = when(of.ordinality, " WITH ORDINALITY");
            let alias = some(of.alias.as_ref(), " AS ", alias);
            let columns = match (of.columns.is_empty(), of.alias.is_some()) {
                (true, _) => String::new(),
                (false, true) => definitions(&of.columns),
                (false, false) => format!(" AS{}", definitions(&of.columns)),
            };
            format!("{}{functions}{ordinality}{alias}{columns}", lateral(of.lateral))
        }
        TableReference::Join(join) => {
            let kind = format!("{:?}", join.kind).to_uppercase();
            let (left, right) = (table(&join.left), table(&join.right));
            let text = match &join.condition {
                JoinCondition::None => format!("{left} CROSS JOIN {right}"),
                JoinCondition::Natural => format!("{left} NATURAL {kind} JOIN {right}"),
                JoinCondition::On(on) => {
                    format!("{left} {kind} JOIN {right} ON {}", expression(on))
                }
                JoinCondition::Using(columns, label) => format!(
                    "{left} {kind} JOIN {right} USING ({}){}",
                    list(columns, name),
                    some(label.as_ref(), " AS ", name)
                ),
            };
            format!("({text}){}", as_alias(join.alias.as_ref()))
        }
        TableReference::TableSample(sample) => format!(
            "{} TABLESAMPLE {}({}){}",
            relation(&sample.relation),
            qualified(&sample.method),
            expressions(&sample.arguments),
            some(sample.repeatable.as_ref(), "", |seed| format!(
                " REPEATABLE ({})",
                expression(seed)
            ))
        ),
    }
}

/// An error as a line of a table: its code, its position in characters, and its message.
pub(super) fn error(error: &crate::SqlError, sql: &str) -> String {
    let position: &dyn Display = &error.character(sql).unwrap_or(0);
    format!("{} ⇒ {position} ⇒ {}", error.code().as_str(), error.message())
}
