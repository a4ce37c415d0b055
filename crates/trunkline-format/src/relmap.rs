//! The relation map: file numbers of the catalogs that cannot be looked up in a catalog.
//!
//! One small checksummed file for the shared catalogs and one for each database.
