//! Serves SQL over the wire protocol of PostgreSQL.
