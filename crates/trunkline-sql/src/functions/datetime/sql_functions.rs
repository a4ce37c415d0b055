//! Functions on dates and times that are written in SQL in the server's catalogs, and known by their
//! names and argument types.
//!
//! ```text
//!   interval + date          interval_pl_date(interval,date)     date + interval
//!   age(timestamp)           age(timestamp)                      age(current_date, timestamp)
//! ```
//!
//! Most of them exchange the operands of an operator.
//!
//! Mirrors PostgreSQL's `catalog/system_functions.sql`.

use super::super::call::Kernel;
use super::super::rows::{binary, unary};
use super::arithmetic::{date_at, date_at_timetz, date_plus};
use super::interval::Interval;
use super::now::current_date;
use super::time::{TimeTz, time_plus};
use super::timestamp::{
    NO_ZONE, age, date_to_timestamp, date_to_timestamptz, plus_interval, timestamp_to_timestamptz,
};

/// The functions, by name and argument types.
pub(in super::super) const KERNELS: &[(&str, Kernel)] = &[
    ("timedate_pl(time,date)", |call| binary(call, |a: i64, b: i32| date_at(b, a))),
    ("timetzdate_pl(timetz,date)", |call| binary(call, |a: TimeTz, b: i32| date_at_timetz(b, a))),
    ("integer_pl_date(int4,date)", |call| {
        binary(call, |a: i32, b: i32| date_plus(b, i64::from(a)))
    }),
    ("interval_pl_date(interval,date)", |call| {
        binary(call, |a: Interval, b: i32| {
            plus_interval(date_to_timestamp(b)?, a, NO_ZONE, call.settings.major)
        })
    }),
    ("interval_pl_time(interval,time)", |call| {
        binary(call, |a: Interval, b: i64| time_plus(b, a, call.settings.major))
    }),
    ("interval_pl_timetz(interval,timetz)", |call| {
        binary(call, |a: Interval, b: TimeTz| {
            Ok(TimeTz { micros: time_plus(b.micros, a, call.settings.major)?, ..b })
        })
    }),
    ("interval_pl_timestamp(interval,timestamp)", |call| {
        binary(call, |a: Interval, b: i64| plus_interval(b, a, NO_ZONE, call.settings.major))
    }),
    ("interval_pl_timestamptz(interval,timestamptz)", |call| {
        let zone = &*call.settings.zone;
        binary(call, |a: Interval, b: i64| plus_interval(b, a, zone, call.settings.major))
    }),
    ("age(timestamp)", |call| {
        let today = date_to_timestamp(current_date(call.settings))?;
        unary(call, |a: i64| age(today, a, NO_ZONE, call.settings.major))
    }),
    ("age(timestamptz)", |call| {
        let zone = &*call.settings.zone;
        let today = date_to_timestamptz(current_date(call.settings), zone)?;
        unary(call, |a: i64| age(today, a, zone, call.settings.major))
    }),
    ("timestamptz(date,time)", |call| {
        binary(call, |a: i32, b: i64| {
            timestamp_to_timestamptz(date_at(a, b)?, &*call.settings.zone)
        })
    }),
];
