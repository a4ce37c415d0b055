//! Logs that real servers wrote, compared with what their `pg_waldump` prints; logs with records of
//! every length and at every place; every reason for an end; what redo makes of pages, compared with
//! the servers' own; and damaged bytes.

mod damage;
mod effects;
mod ends;
mod images;
mod new_records;
mod prepared_files;
mod reading;
mod redo_damage;
mod redo_images;
mod redo_refusals;
mod redo_rules;
mod servers;
