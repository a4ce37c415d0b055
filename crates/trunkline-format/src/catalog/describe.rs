//! The macro that declares a catalog: its description, and a row type with its decoder.
//!
//! One declaration holds both, so that a column cannot be decoded under a name that the catalog does
//! not have, and so that the two do not drift apart. [`super`] shows an example.
//!
//! - After the OID follow flags of [`super::CatalogTable`] that are set: `mapped`, `shared`, `open`.
//! - A column is `name: Type`, where the type is a [`super::ColumnType`]. `.since(V18)` and
//!   `.until(V17)` limit it to a range of versions, `.nullable()` says that a column of fixed size
//!   can be null. A column that moved or changed its type between versions is listed once for each.
//! - A field is `field: RustType = column`. Its type decodes itself ([`super::ColumnValue`]). A field
//!   without a column starts as its default; the method named by `finish` fills it.

/// Declares a catalog. See the module.
macro_rules! describe_catalog {
    (@value $tuple:ident $column:ident) => { $tuple.get(stringify!($column))? };
    (@value $tuple:ident) => { Default::default() };
    (
        $(#[$table_doc:meta])*
        $table:ident = $name:literal, $oid:literal $(, $flag:ident)*;
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
            ..$crate::catalog::CatalogTable::new($name, $oid, &[
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
