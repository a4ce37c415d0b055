//! What a cluster holds, from its catalogs: databases, schemas, relations, columns, types, indexes.
//!
//! One short-lived snapshot for each database.
