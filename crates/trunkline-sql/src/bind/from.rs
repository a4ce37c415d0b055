//! `FROM`: tables, subqueries and joins become relations, and their names a scope.
//!
//! ```text
//!   from t join u using (id)
//!     relation   Join( Table t, Table u ) on t.id = u.id
//!     scope      t, u by name only; the join: id, then the other columns of t and of u
//! ```

use std::rc::Rc;

use trunkline_aio::facade::hash::Set;
use trunkline_engine::catalog::RelationInfo;
use trunkline_format::catalog::{Generated, RelationKind};

use super::binder::{Binder, Context, Place};
use super::level::Level;
use super::outer_aggregate::outer_aggregate;
use super::scope::{Presence, Scope, ScopeColumn, ScopeTable};
use crate::bound::{
    Expr, ExprKind, JoinKind, Origin, Query, Relation, SqlType, TableColumn, TableScan,
};
use crate::catalog::{ObjectName, SYSTEM_COLUMNS, oids};
use crate::error::{SqlError, SqlState};
use crate::syntax::{
    Alias, JoinCondition, JoinExpression, JoinKind as SyntaxJoinKind, QualifiedName,
    RangeSubselect, RangeVariable, TableReference,
};

/// What an item of `FROM` contributes.
pub(super) struct FromItem {
    pub(super) relation: Relation,
    pub(super) tables: Vec<ScopeTable>,
}

impl Binder<'_> {
    /// Binds `FROM`. The items become cross joins, in order. Returns the scope of the query.
    pub(super) fn bind_from<'o>(
        &mut self,
        items: &[TableReference],
        outer: &'o Scope<'o>,
    ) -> Result<(Relation, Scope<'o>), SqlError> {
        let mut scope = Scope::within(outer);
        let mut relation = None;
        for item in items {
            let found = self.bind_item(item, &scope)?;
            check_names(&scope.tables, &found.tables)?;
            relation = Some(match relation {
                None => found.relation,
                Some(left) => {
                    let lateral = self.uses(&found.relation, &scope.tables);
                    cross_join(left, found.relation, lateral)
                }
            });
            scope.tables.extend(found.tables);
        }
        Ok((relation.unwrap_or(Relation::Unit), scope))
    }

    /// Binds one item. `before` has the items before it, to which a lateral item can refer.
    fn bind_item(
        &mut self,
        item: &TableReference,
        before: &Scope<'_>,
    ) -> Result<FromItem, SqlError> {
        crate::bound::with_stack(|| match item {
            TableReference::Relation(variable) => self.range_variable(variable, before),
            TableReference::Subselect(subselect) => self.subselect(subselect, before),
            TableReference::Function(function) => self.range_function(function, before),
            TableReference::Join(join) => self.join(join, before),
            TableReference::TableSample(sample) => {
                let error = SqlError::unsupported("TABLESAMPLE is not supported by trunkline");
                Err(error.at(sample.relation.name.span.start))
            }
        })
    }

    /// A table, or a common table expression.
    fn range_variable(
        &mut self,
        variable: &RangeVariable,
        before: &Scope<'_>,
    ) -> Result<FromItem, SqlError> {
        let alias = variable.alias.as_ref();
        if let [name] = &*variable.name.parts
            && let Some(cte) = before.cte(&name.text)
        {
            return self.cte_reference(&cte.clone(), alias, name.span.start);
        }
        let at = variable.name.span.start;
        let name = self.object_name(&variable.name).map_err(|error| quoted(error, variable))?;
        if let Some(found) = self.names.virtual_relation(name) {
            return self.virtual_relation(found, alias, at);
        }
        let relation = self.names.relation_named(name).map_err(|error| error.at(at))?;
        self.check_readable(relation).map_err(|error| error.at(at))?;
        match relation.kind {
            RelationKind::View => self.view(relation, alias).map_err(|error| error.at(at)),
            _ => self.table(relation, variable, alias),
        }
    }

    /// Splits a name into schema and name. A database in front must be this one.
    pub(super) fn object_name<'n>(
        &self,
        name: &'n QualifiedName,
    ) -> Result<ObjectName<'n>, SqlError> {
        match &*name.parts {
            [only] => Ok(ObjectName::unqualified(&only.text)),
            [schema, last] => Ok(ObjectName { schema: Some(&schema.text), name: &last.text }),
            [database, schema, last] if database.text == self.database_name() => {
                Ok(ObjectName { schema: Some(&schema.text), name: &last.text })
            }
            parts => {
                let parts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
                let what = match parts.len() {
                    3 => "cross-database references are not implemented",
                    _ => "improper qualified name (too many dotted names)",
                };
                let code = match parts.len() {
                    3 => SqlState::FEATURE_NOT_SUPPORTED,
                    _ => SqlState::SYNTAX_ERROR,
                };
                let error = SqlError::new(code, format!("{what}: {}", parts.join(".")));
                Err(error.at(name.span.start))
            }
        }
    }

    /// The name of the database.
    pub(super) fn database_name(&self) -> String {
        self.catalog().encoding().decode(&self.catalog().database().info().name)
    }

    /// Refuses relations without rows, and those whose rows we can't compute.
    fn check_readable(&self, relation: &RelationInfo) -> Result<(), SqlError> {
        let name = self.catalog().encoding().decode(&relation.name);
        let wrong = |kind: &str| {
            let message = format!("cannot open relation \"{name}\"");
            let detail = format!("This operation is not supported for {kind}.");
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).with_detail(detail))
        };
        match relation.kind {
            RelationKind::Table
            | RelationKind::PartitionedTable
            | RelationKind::MaterializedView
            | RelationKind::View
            | RelationKind::Sequence
            | RelationKind::Toast => Ok(()),
            RelationKind::Index => wrong("indexes"),
            RelationKind::PartitionedIndex => wrong("partitioned indexes"),
            RelationKind::CompositeType => wrong("composite types"),
            RelationKind::ForeignTable => {
                let message = format!("foreign table \"{name}\" is not supported by trunkline");
                Err(SqlError::unsupported(message))
            }
        }
    }

    /// A table with all of its columns. Those that the statement doesn't use are removed later.
    fn table(
        &mut self,
        relation: &RelationInfo,
        variable: &RangeVariable,
        alias: Option<&Alias>,
    ) -> Result<FromItem, SqlError> {
        let encoding = self.catalog().encoding();
        let own_name = encoding.decode(&relation.name);
        let name = alias.map_or(&*own_name, |alias| &alias.name.text);
        let database = self.catalog().database();
        let infos = database.columns(relation).map_err(|error| {
            SqlError::new(SqlState::DATA_CORRUPTED, error.to_string()).at(variable.name.span.start)
        })?;
        let (mut scan, mut columns) = (Vec::new(), Vec::new());
        let mut add = |binder: &mut Self, column: &str, ty: SqlType, number: i16| {
            let origin = Some(Origin { table: relation.oid, number });
            let id = binder.column_of(Some(name), column, ty, origin);
            scan.push(TableColumn { id, number });
            Expr::new(ExprKind::Column(id), ty)
        };
        let mut aliases = alias.map_or(&[][..], |alias| &alias.columns).iter();
        for info in infos.iter().filter(|info| !info.dropped) {
            let ty =
                SqlType { oid: info.type_oid, modifier: info.modifier, collation: info.collation };
            let given = aliases.next().map(|alias| alias.text.clone());
            let shown = given.unwrap_or_else(|| encoding.decode(&info.name));
            // A relation has at most 1,600 columns.
            let value = add(self, &shown, ty, info.number as i16);
            let refused = (info.generated == Generated::Virtual).then(|| {
                let message =
                    format!("virtual generated column \"{shown}\" is not supported by trunkline");
                SqlError::unsupported(message)
            });
            columns.push(ScopeColumn { name: shown.into(), value, is_system: false, refused });
        }
        check_alias_count(alias, name, columns.len())?;
        for system in SYSTEM_COLUMNS {
            let value = add(self, system.name, SqlType::new(system.type_oid), system.number);
            let name = system.name.into();
            columns.push(ScopeColumn { name, value, is_system: true, refused: None });
        }
        let scan = TableScan {
            table: relation.oid,
            alias: name.into(),
            inherit: !variable.only,
            columns: scan,
        };
        let table = ScopeTable {
            name: Some(name.into()),
            schema: alias.is_none().then_some(relation.schema),
            own_name: Some(own_name.into()),
            columns: columns.into(),
            columns_visible: true,
            name_visible: true,
            row_type: Some(relation.row_type).filter(|&oid| oid != oids::NONE),
            is_scalar: false,
            presence: Presence::Always,
        };
        Ok(FromItem { relation: Relation::Table(scan), tables: vec![table] })
    }

    /// A query in `FROM`.
    fn subselect(
        &mut self,
        subselect: &RangeSubselect,
        before: &Scope<'_>,
    ) -> Result<FromItem, SqlError> {
        let mut scope = Scope::within(before.outer_or_self());
        match subselect.lateral {
            true => scope.tables = before.tables.clone(),
            false => scope.hidden = before.names(),
        }
        let aggregates = self.outer_aggregates.len();
        let query = self.query(&subselect.query, &scope, true)?;
        if let Some(outer) = self.outer_aggregates.get(aggregates) {
            return Err(outer_aggregate(outer.at));
        }
        let name = subselect.alias.as_ref().map(|alias| &*alias.name.text);
        let table = self.query_table(&query, subselect.alias.as_ref(), name)?;
        Ok(FromItem { relation: query.relation, tables: vec![table] })
    }

    /// The names of a query's output columns, as those of an item of `FROM`.
    pub(super) fn query_table(
        &mut self,
        query: &Query,
        alias: Option<&Alias>,
        name: Option<&str>,
    ) -> Result<ScopeTable, SqlError> {
        check_alias_count(alias, name.unwrap_or_default(), query.output.len())?;
        let mut aliases = alias.map_or(&[][..], |alias| &alias.columns).iter();
        let columns: Vec<ScopeColumn> = (query.output.iter())
            .map(|output| {
                let given = aliases.next().map(|alias| alias.text.as_str().into());
                let ty = self.columns.get(output.id).ty;
                ScopeColumn {
                    name: given.unwrap_or_else(|| output.name.clone()),
                    value: Expr::new(ExprKind::Column(output.id), ty),
                    is_system: false,
                    refused: None,
                }
            })
            .collect();
        Ok(ScopeTable {
            name: name.map(Box::from),
            schema: None,
            own_name: None,
            columns: columns.into(),
            columns_visible: true,
            name_visible: name.is_some(),
            row_type: None,
            is_scalar: false,
            presence: Presence::Always,
        })
    }

    /// A side of a join, which may be the nullable one of an outer join.
    fn bind_side(
        &mut self,
        item: &TableReference,
        before: &Scope<'_>,
        nullable: bool,
    ) -> Result<FromItem, SqlError> {
        if !nullable {
            return self.bind_item(item, before);
        }
        self.recursions.enter("an outer join");
        let found = self.bind_item(item, before);
        self.recursions.leave();
        found
    }

    /// A join.
    fn join(&mut self, join: &JoinExpression, before: &Scope<'_>) -> Result<FromItem, SqlError> {
        let nullable = match join.kind {
            SyntaxJoinKind::Inner => (false, false),
            SyntaxJoinKind::Left => (false, true),
            SyntaxJoinKind::Right => (true, false),
            SyntaxJoinKind::Full => (true, true),
        };
        let left = self.bind_side(&join.left, before, nullable.0)?;
        // The right side can refer to the left one if it is lateral and the join allows it.
        let allows = !matches!(join.kind, SyntaxJoinKind::Right | SyntaxJoinKind::Full);
        let lefts = left.tables.iter().map(|table| match allows {
            true => table.clone(),
            false => table.forbidden(),
        });
        let beside = Scope {
            tables: before.tables.iter().cloned().chain(lefts).collect(),
            ..Scope::within(before.outer_or_self())
        };
        let right = self.bind_side(&join.right, &beside, nullable.1)?;
        check_names(&left.tables, &right.tables)?;
        let kind = match join.kind {
            SyntaxJoinKind::Inner => JoinKind::Inner,
            SyntaxJoinKind::Left => JoinKind::Left,
            SyntaxJoinKind::Right => JoinKind::Right,
            SyntaxJoinKind::Full => JoinKind::Full,
        };
        let lateral = self.uses(&right.relation, &left.tables);
        let (mut left, mut right) = (left, right);
        let mut sides = (left.tables, right.tables);
        let (condition, columns) = match &join.condition {
            JoinCondition::None => (None, joined_columns(&sides, &[])),
            JoinCondition::On(condition) => {
                let mut scope = Scope::within(before.outer_or_self());
                scope.tables = sides.0.iter().chain(&sides.1).cloned().collect();
                let mut level = Level::default();
                let mut context = Context::new(&scope, Place::JoinCondition, &mut level);
                let condition = self.condition(condition, &mut context)?;
                (Some(condition), joined_columns(&sides, &[]))
            }
            JoinCondition::Using(names, _) => {
                let names: Vec<(&str, u32)> =
                    names.iter().map(|name| (name.text.as_str(), name.span.start)).collect();
                self.join_using(kind, &sides, &names)?
            }
            JoinCondition::Natural => {
                let shared = shared_names(&sides);
                let names: Vec<(&str, u32)> =
                    shared.iter().map(|name| (&**name, join.span.start)).collect();
                self.join_using(kind, &sides, &names)?
            }
        };
        self.mark_nullable(
            kind,
            (&mut left.relation, &mut sides.0),
            (&mut right.relation, &mut sides.1),
        );
        let merged = match &join.condition {
            JoinCondition::Using(names, Some(alias)) => {
                Some(using_table(&columns, names.len(), &alias.text))
            }
            _ => None,
        };
        let tables = self.join_tables(&mut sides, columns, join.alias.as_ref(), merged)?;
        let relation = Relation::Join {
            kind,
            left: Box::new(left.relation),
            right: Box::new(right.relation),
            condition,
            lateral,
        };
        Ok(FromItem { relation, tables })
    }

    /// Whether a relation refers to columns of these tables, which are beside it.
    fn uses(&self, relation: &Relation, tables: &[ScopeTable]) -> bool {
        let mut own = Set::default();
        for column in tables.iter().flat_map(|table| table.columns.iter()) {
            column.value.columns(&self.subqueries, &mut |id| {
                own.insert(id);
            });
        }
        let mut found = false;
        relation.used(&self.subqueries, &mut |id| found |= own.contains(&id));
        found
    }

    /// The tables that are visible behind a join: its sides by name, and the join itself. An alias of
    /// the join hides its sides.
    fn join_tables(
        &mut self,
        sides: &mut (Vec<ScopeTable>, Vec<ScopeTable>),
        columns: Vec<ScopeColumn>,
        alias: Option<&Alias>,
        using: Option<ScopeTable>,
    ) -> Result<Vec<ScopeTable>, SqlError> {
        let name = alias.map(|alias| &*alias.name.text);
        check_alias_count(alias, name.unwrap_or_default(), columns.len())?;
        let mut aliases = alias.map_or(&[][..], |alias| &alias.columns).iter();
        let columns: Vec<ScopeColumn> = (columns.into_iter())
            .map(|column| match aliases.next() {
                Some(alias) => ScopeColumn { name: alias.text.as_str().into(), ..column },
                None => column,
            })
            .collect();
        let mut tables = Vec::new();
        if alias.is_none() {
            for table in sides.0.drain(..).chain(sides.1.drain(..)) {
                tables.push(ScopeTable { columns_visible: false, ..table });
            }
        }
        tables.extend(using);
        tables.push(ScopeTable {
            name: name.map(Box::from),
            schema: None,
            own_name: None,
            columns: columns.into(),
            columns_visible: true,
            name_visible: name.is_some(),
            row_type: None,
            is_scalar: false,
            presence: Presence::Always,
        });
        Ok(tables)
    }

    /// `USING`: the condition, and the columns of the join. Merged columns come first.
    fn join_using(
        &mut self,
        kind: JoinKind,
        sides: &(Vec<ScopeTable>, Vec<ScopeTable>),
        names: &[(&str, u32)],
    ) -> Result<(Option<Expr>, Vec<ScopeColumn>), SqlError> {
        let (mut conditions, mut columns) = (Vec::new(), Vec::new());
        for (at, &(name, location)) in names.iter().enumerate() {
            if names.iter().take(at).any(|&(earlier, _)| earlier == name) {
                let message =
                    format!("column name \"{name}\" appears more than once in USING clause");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message).at(location));
            }
            let left = using_column(&sides.0, name, "left", location)?;
            let right = using_column(&sides.1, name, "right", location)?;
            let equals = self.operator("=", left.clone(), right.clone(), location)?;
            conditions.push(equals);
            let value = self.merged_column(kind, left, right, location)?;
            let name = name.into();
            columns.push(ScopeColumn { name, value, is_system: false, refused: None });
        }
        let names: Vec<&str> = names.iter().map(|&(name, _)| name).collect();
        columns.extend(joined_columns(sides, &names));
        let condition = match conditions.len() {
            0 | 1 => conditions.pop(),
            _ => Some(Expr::new(ExprKind::And(conditions), SqlType::new(oids::BOOL))),
        };
        Ok((condition, columns))
    }

    /// The value of a column that `USING` merges (`buildMergedJoinVar`).
    fn merged_column(
        &mut self,
        kind: JoinKind,
        left: Expr,
        right: Expr,
        location: u32,
    ) -> Result<Expr, SqlError> {
        let original = (left.clone(), right.clone());
        let (ty, mut sides) = self.common_type("JOIN/USING", vec![left, right], location)?;
        let (right, left) = (sides.pop(), sides.pop());
        match (kind, left, right) {
            // Equal values need not look the same. Of two, the server takes one that isn't cast.
            (JoinKind::Inner, Some(left), Some(right))
                if left != original.0 && right == original.1 =>
            {
                Ok(right)
            }
            (JoinKind::Inner | JoinKind::Left, Some(left), _) => Ok(left),
            (JoinKind::Right, _, Some(right)) => Ok(right),
            (_, Some(left), Some(right)) => {
                Ok(Expr::new(ExprKind::Coalesce(vec![left, right]), ty))
            }
            _ => Err(SqlError::internal("a merged column has two sides")),
        }
    }
}

/// A cross join.
fn cross_join(left: Relation, right: Relation, lateral: bool) -> Relation {
    let (left, right) = (Box::new(left), Box::new(right));
    Relation::Join { kind: JoinKind::Inner, left, right, condition: None, lateral }
}

/// Two items of `FROM` must not have the same name, unless they are tables of different schemas
/// without aliases.
fn check_names(left: &[ScopeTable], right: &[ScopeTable]) -> Result<(), SqlError> {
    for one in left.iter().filter(|table| table.name_visible) {
        for other in right.iter().filter(|table| table.name_visible) {
            let differ =
                one.schema.is_some() && other.schema.is_some() && one.schema != other.schema;
            if one.name == other.name && !differ {
                let name = one.name.as_deref().unwrap_or_default();
                let message = format!("table name \"{name}\" specified more than once");
                return Err(SqlError::new(SqlState::DUPLICATE_ALIAS, message));
            }
        }
    }
    Ok(())
}

/// An alias must not name more columns than there are.
pub(super) fn check_alias_count(
    alias: Option<&Alias>,
    name: &str,
    found: usize,
) -> Result<(), SqlError> {
    match alias {
        Some(alias) if alias.columns.len() > found => {
            let given = alias.columns.len();
            let message = format!(
                "table \"{name}\" has {found} columns available but {given} columns specified"
            );
            Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message))
        }
        _ => Ok(()),
    }
}

/// The columns of both sides that can be referred to by name alone, without those that are merged.
fn joined_columns(sides: &(Vec<ScopeTable>, Vec<ScopeTable>), merged: &[&str]) -> Vec<ScopeColumn> {
    let visible = sides.0.iter().chain(&sides.1).filter(|table| table.columns_visible);
    let columns = visible.flat_map(ScopeTable::shown);
    columns.filter(|column| !merged.contains(&&*column.name)).cloned().collect()
}

/// The names that both sides have, for `NATURAL`.
fn shared_names(sides: &(Vec<ScopeTable>, Vec<ScopeTable>)) -> Vec<Box<str>> {
    let names = |tables: &[ScopeTable]| -> Vec<Box<str>> {
        let visible = tables.iter().filter(|table| table.columns_visible);
        visible.flat_map(ScopeTable::shown).map(|column| column.name.clone()).collect()
    };
    let right = names(&sides.1);
    names(&sides.0).into_iter().filter(|name| right.contains(name)).collect()
}

/// The column of one side that `USING` names.
fn using_column(
    tables: &[ScopeTable],
    name: &str,
    side: &str,
    location: u32,
) -> Result<Expr, SqlError> {
    let visible = tables.iter().filter(|table| table.columns_visible);
    let mut found = visible.flat_map(|table| table.named(name));
    match (found.next(), found.next()) {
        (Some(column), None) => match &column.refused {
            Some(refused) => Err(refused.clone().at(location)),
            None => Ok(column.value.clone()),
        },
        (None, _) => {
            let message = format!(
                "column \"{name}\" specified in USING clause does not exist in {side} table"
            );
            Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
        }
        _ => {
            let message =
                format!("common column name \"{name}\" appears more than once in {side} table");
            Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message))
        }
    }
}

/// The table that `JOIN … USING (…) AS name` makes of the merged columns.
fn using_table(columns: &[ScopeColumn], merged: usize, name: &str) -> ScopeTable {
    ScopeTable {
        name: Some(name.into()),
        schema: None,
        own_name: None,
        columns: columns.iter().take(merged).cloned().collect::<Rc<[_]>>(),
        columns_visible: false,
        name_visible: true,
        row_type: None,
        is_scalar: false,
        presence: Presence::Always,
    }
}

/// The message for a relation quotes its name.
fn quoted(error: SqlError, variable: &RangeVariable) -> SqlError {
    let parts: Vec<&str> = variable.name.parts.iter().map(|part| part.text.as_str()).collect();
    match parts.len() {
        3 => {
            let name = parts.join(".");
            let message = format!("cross-database references are not implemented: \"{name}\"");
            SqlError::unsupported(message).at(variable.name.span.start)
        }
        _ => error,
    }
}
