//! The macro that declares a catalog: its columns, a row type, and the row type's decoder.
//!
//! A single declaration defines all three, so that they can't get out of sync, and so that a row
//! type can't refer to a column that the catalog doesn't have. [`super`] shows an example.
//!
//! - Flags of [`super::CatalogTable`] may follow the OID: `mapped`, `shared`, `open`.
//! - The index is a unique B-tree on the catalog, with its name and OID.
//! - A column is `name: Type`, where the type is a [`super::ColumnType`]. `.since(V18)` and
//!   `.until(V17)` restrict it to a range of versions, and `.nullable()` says that a fixed-size
//!   column can be null. If a column has a different position or type in some versions, list it
//!   once for each position or type.
//! - A field is `field: RustType = column`, where the Rust type implements [`super::ColumnValue`].
//!   A field without a column is set to its default value first, and the `finish` method must then
//!   fill it in.

/// Declares a catalog. See the module header.
macro_rules! describe_catalog {
    (@value $tuple:ident $column:ident) => { $tuple.get(stringify!($column))? };
    (@value $tuple:ident) => { Default::default() };
    (
        $(#[$table_doc:meta])*
        $table:ident = $name:literal, $oid:literal $(, $flag:ident)*;
        index $index:literal, $index_oid:literal;
        columns {
            $($column:ident: $kind:ident $(.$limit:ident($($version:ident)?))*,)*
        }
        $(
            $(#[$row_doc:meta])*
            row $row:ident {
                $($(#[$field_doc:meta])* $field:ident: $type:ty $(= $source:ident)?,)*
            }
            $(finish $finish:ident)?
        )?
    ) => {
        $(#[$table_doc])*
        pub static $table: $crate::catalog::CatalogTable = $crate::catalog::CatalogTable {
            $($flag: true,)*
            ..$crate::catalog::CatalogTable::new($name, $oid, ($index, $index_oid), &[
                $($crate::catalog::CatalogColumn::new(
                    stringify!($column),
                    $crate::catalog::ColumnType::$kind,
                )$(.$limit($($crate::control::PgVersion::$version)?))*,)*
            ])
        };
        $(
            $(#[$row_doc])*
            #[derive(Clone, PartialEq, Debug)]
            pub struct $row {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl $crate::catalog::CatalogRow for $row {
                const CATALOG: &'static $crate::catalog::CatalogTable = &$table;

                fn decode(
                    tuple: &mut $crate::catalog::CatalogTuple<'_, '_>,
                ) -> Result<Self, $crate::catalog::RowError> {
                    let row = Self {
                        $($field: describe_catalog!(@value tuple $($source)?),)*
                    };
                    $(let row = row.$finish(tuple)?;)?
                    Ok(row)
                }
            }
        )?
    };
}

pub(super) use describe_catalog;
