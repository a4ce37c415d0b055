//! Logs that real servers wrote, compared with what their `pg_waldump` prints; logs with records of
//! every length and at every place; every reason for an end; and damaged bytes.

mod damage;
mod ends;
mod images;
mod reading;
mod servers;
