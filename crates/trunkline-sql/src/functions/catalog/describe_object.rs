//! Objects in words: `pg_describe_object` (`getObjectDescription`).
//!
//! An object is given as `pg_depend` refers to it: by the OID of its catalog, its OID, and the number of
//! a column or 0. For example, `1259, 16470, 1` is `column id of table orders`.

use trunkline_format::Oid;
use trunkline_format::catalog::RelationKind;

use super::deparse::Deparser;
use super::node_fields::damaged;
use crate::catalog::ObjectName;
use crate::error::SqlError;
use crate::functions::call::Kernel;
use crate::functions::rows::{Reader, each_row};

/// The kernels of this module.
pub(in crate::functions) const DESCRIPTIONS: &[(&str, Kernel)] =
    &[("pg_describe_object", |call| {
        let names = call.settings.session()?.names();
        let deparser = Deparser::new(call.settings, names, false);
        let (classes, objects) = (Reader::<u32>::new(call, 0)?, Reader::<u32>::new(call, 1)?);
        let parts = Reader::<i32>::new(call, 2)?;
        each_row(call.rows, |row| {
            let (Some(class), Some(object), Some(part)) =
                (classes.get(row), objects.get(row), parts.get(row))
            else {
                return Ok(None);
            };
            // Rows about objects that can't be dropped refer to none.
            if class == 0 && object == 0 {
                return Ok(None);
            }
            deparser.described(class, Oid(object), part)
        })
    })];

/// A name with the schema that it is in.
struct Named<'n> {
    schema: Oid,
    name: &'n [u8],
}

impl Deparser<'_> {
    /// An object; `None` if there is none.
    fn described(&self, class: u32, object: Oid, part: i32) -> Result<Option<String>, SqlError> {
        let catalog = self.names.catalog();
        let (database, definitions) = (catalog.database(), catalog.definitions());
        let plain = |name: &[u8]| catalog.encoding().decode(name);
        Ok(match class {
            // pg_class
            1259 => match (self.relation_in_words(object)?, part) {
                (Some(relation), 0) => Some(relation),
                (Some(relation), part) => {
                    let column = self.column_name(object, part)?;
                    column.map(|column| format!("column {column} of {relation}"))
                }
                (None, _) => None,
            },
            // pg_proc
            1255 => self.signature(object)?.map(|text| format!("function {text}")),
            // pg_type
            1247 => {
                let row = catalog.data_type(object);
                row.map(|_| format!("type {}", self.names.format_type(object, None)))
            }
            // pg_collation
            3456 => match catalog.collation(object) {
                Some(row) => {
                    let is_visible = self.names.is_collation_visible(object)? == Some(true);
                    let named = Named { schema: row.schema, name: &row.name };
                    Some(format!("collation {}", self.qualified(&named, is_visible)?))
                }
                None => None,
            },
            // pg_constraint
            2606 => match definitions.constraint(object)? {
                Some(row) => {
                    let name = plain(&row.name);
                    let relation = self.relation_in_words(row.relation)?;
                    Some(match relation {
                        Some(relation) => format!("constraint {name} on {relation}"),
                        None => format!("constraint {name}"),
                    })
                }
                None => None,
            },
            // pg_attrdef
            2604 => {
                let rows = &definitions.catalogs()?.column_defaults;
                match rows.iter().find(|row| row.oid == object) {
                    Some(row) => {
                        let relation = self.relation_in_words(row.relation)?;
                        let column = self.column_name(row.relation, i32::from(row.number))?;
                        relation.zip(column).map(|(relation, column)| {
                            format!("default value for column {column} of {relation}")
                        })
                    }
                    None => None,
                }
            }
            // pg_language
            2612 => catalog.language_name(object).map(|name| format!("language {}", plain(name))),
            // pg_operator
            2617 => self.operator_signature(object)?.map(|text| format!("operator {text}")),
            // pg_opclass
            2616 => match database.operator_classes().find(|row| row.oid == object) {
                Some(row) => {
                    let is_visible = self.names.is_operator_class_visible(object) == Some(true);
                    let named = Named { schema: row.schema, name: &row.name };
                    let name = self.qualified(&named, is_visible)?;
                    let method = database.access_method(row.method).map(plain).unwrap_or_default();
                    Some(format!("operator class {name} for access method {method}"))
                }
                None => None,
            },
            // pg_opfamily
            2753 => match catalog.families().iter().find(|row| row.oid == object) {
                Some(row) => {
                    let is_visible = self.names.is_operator_family_visible(object) == Some(true);
                    let named = Named { schema: row.schema, name: &row.name };
                    let name = self.qualified(&named, is_visible)?;
                    let method = database.access_method(row.method).map(plain).unwrap_or_default();
                    Some(format!("operator family {name} for access method {method}"))
                }
                None => None,
            },
            // pg_am
            2601 => {
                database.access_method(object).map(|name| format!("access method {}", plain(name)))
            }
            _ => return self.described_by_name(class, object),
        })
    }

    /// An object of a class whose objects have a name only.
    fn described_by_name(&self, class: u32, object: Oid) -> Result<Option<String>, SqlError> {
        let catalog = self.names.catalog();
        let (database, definitions) = (catalog.database(), catalog.definitions());
        let plain = |name: &[u8]| catalog.encoding().decode(name);
        Ok(match class {
            // pg_namespace
            2615 => database.schema(object).map(|row| format!("schema {}", plain(&row.name))),
            // pg_statistic_ext
            3381 => {
                let rows = definitions.catalogs()?.statistics.iter();
                self.among(object, "statistics object", rows.map(|r| (r.oid, r.schema, &*r.name)))?
            }
            // pg_conversion
            2607 => {
                let rows = definitions.catalogs()?.conversions.iter();
                self.among(object, "conversion", rows.map(|r| (r.oid, r.schema, &*r.name)))?
            }
            // pg_ts_parser
            3601 => {
                let rows = definitions.catalogs()?.text_search_parsers.iter();
                self.among(object, "text search parser", rows.map(|r| (r.oid, r.schema, &*r.name)))?
            }
            // pg_ts_dict
            3600 => {
                let rows = definitions.catalogs()?.text_search_dictionaries.iter();
                let rows = rows.map(|r| (r.oid, r.schema, &*r.name));
                self.among(object, "text search dictionary", rows)?
            }
            // pg_ts_template
            3764 => {
                let rows = definitions.catalogs()?.text_search_templates.iter();
                let rows = rows.map(|r| (r.oid, r.schema, &*r.name));
                self.among(object, "text search template", rows)?
            }
            // pg_ts_config
            3602 => {
                let rows = definitions.catalogs()?.text_search_configs.iter();
                let rows = rows.map(|r| (r.oid, r.schema, &*r.name));
                self.among(object, "text search configuration", rows)?
            }
            // pg_authid
            1260 => definitions.role(object)?.map(|row| format!("role {}", plain(&row.name))),
            // pg_database
            1262 => {
                let row = database.databases().iter().find(|row| row.oid == object);
                row.map(|row| format!("database {}", plain(&row.name)))
            }
            // pg_tablespace
            1213 => {
                let row = database.tablespaces().iter().find(|row| row.oid == object);
                row.map(|row| format!("tablespace {}", plain(&row.name)))
            }
            // pg_foreign_data_wrapper
            2328 => {
                let mut rows = definitions.catalogs()?.foreign_data_wrappers.iter();
                let row = rows.find(|row| row.oid == object);
                row.map(|row| format!("foreign-data wrapper {}", plain(&row.name)))
            }
            // pg_foreign_server
            1417 => {
                let mut rows = definitions.catalogs()?.foreign_servers.iter();
                let row = rows.find(|row| row.oid == object);
                row.map(|row| format!("server {}", plain(&row.name)))
            }
            // pg_extension
            3079 => {
                let mut rows = definitions.catalogs()?.extensions.iter();
                let row = rows.find(|row| row.oid == object);
                row.map(|row| format!("extension {}", plain(&row.name)))
            }
            _ => return Err(self.other_class(class)),
        })
    }

    /// The error for a class that isn't described above.
    fn other_class(&self, class: u32) -> SqlError {
        let database = self.names.catalog().database();
        match database.relation(Oid(class)).filter(|_| class < 16_384) {
            Some(relation) => {
                let name = self.names.catalog().encoding().decode(&relation.name);
                let message =
                    format!("describing an object of {name} is not supported by trunkline");
                SqlError::unsupported(message)
            }
            None => SqlError::internal(format!("unsupported object class: {class}")),
        }
    }

    /// An object of a class whose objects have schemas, among all of them.
    fn among<'r>(
        &self,
        object: Oid,
        what: &str,
        all: impl Iterator<Item = (Oid, Oid, &'r [u8])> + Clone,
    ) -> Result<Option<String>, SqlError> {
        let Some((_, schema, name)) = all.clone().find(|(oid, ..)| *oid == object) else {
            return Ok(None);
        };
        let is_visible = self.names.is_object_visible(object, all) == Some(true);
        Ok(Some(format!("{what} {}", self.qualified(&Named { schema, name }, is_visible)?)))
    }

    /// A quoted name, with its schema unless the object is visible.
    fn qualified(&self, named: &Named<'_>, is_visible: bool) -> Result<String, SqlError> {
        let name = self.quoted(named.name);
        if is_visible {
            return Ok(name);
        }
        let schema = self.names.catalog().database().schema(named.schema);
        Ok(format!("{}.{name}", self.quoted(&schema.ok_or_else(|| damaged("schema"))?.name)))
    }

    /// A relation with its kind, such as `table orders`.
    fn relation_in_words(&self, oid: Oid) -> Result<Option<String>, SqlError> {
        let Some(relation) = self.names.catalog().database().relation(oid) else { return Ok(None) };
        let kind = match relation.kind {
            RelationKind::Table | RelationKind::PartitionedTable => "table",
            RelationKind::Index | RelationKind::PartitionedIndex => "index",
            RelationKind::Sequence => "sequence",
            RelationKind::Toast => "toast table",
            RelationKind::View => "view",
            RelationKind::MaterializedView => "materialized view",
            RelationKind::CompositeType => "composite type",
            RelationKind::ForeignTable => "foreign table",
        };
        Ok(Some(format!("{kind} {}", self.relation_name(oid, false)?)))
    }

    fn column_name(&self, table: Oid, number: i32) -> Result<Option<String>, SqlError> {
        let catalog = self.names.catalog();
        let system = crate::catalog::SYSTEM_COLUMNS;
        if let Some(column) = system.iter().find(|column| i32::from(column.number) == number) {
            return Ok(Some(column.name.to_owned()));
        }
        let Some(relation) = catalog.database().relation(table) else { return Ok(None) };
        let columns = catalog.database().columns(relation).map_err(|_| damaged("columns"))?;
        let mut columns = columns.iter().filter(|column| !column.dropped);
        let column = columns.find(|column| i64::from(column.number) == i64::from(number));
        Ok(column.map(|column| catalog.encoding().decode(&column.name)))
    }

    /// A function with the types of its arguments (`format_procedure`).
    fn signature(&self, function: Oid) -> Result<Option<String>, SqlError> {
        let Some(row) = self.names.catalog().procedure(function) else { return Ok(None) };
        let is_visible = self.names.is_function_visible(function) == Some(true);
        let named = Named { schema: row.schema, name: &row.name };
        let types = row.arguments.iter().map(|ty| self.names.type_name(*ty));
        let types: Vec<String> = types.collect();
        Ok(Some(format!("{}({})", self.qualified(&named, is_visible)?, types.join(","))))
    }

    /// An operator with the types of its operands (`format_operator`).
    fn operator_signature(&self, operator: Oid) -> Result<Option<String>, SqlError> {
        let catalog = self.names.catalog();
        let Some(row) = catalog.operator(operator) else { return Ok(None) };
        let name = catalog.encoding().decode(&row.name);
        let found = self.names.operators_named(ObjectName::unqualified(&name));
        let prefix = match found.iter().any(|found| found.oid == operator) {
            true => String::new(),
            false => {
                let schema = catalog.database().schema(row.schema);
                format!("{}.", self.quoted(&schema.ok_or_else(|| damaged("schema"))?.name))
            }
        };
        let operand = |ty: Oid| match ty {
            Oid(0) => "NONE".to_owned(),
            ty => self.names.type_name(ty),
        };
        Ok(Some(format!("{prefix}{name}({},{})", operand(row.left), operand(row.right))))
    }
}
