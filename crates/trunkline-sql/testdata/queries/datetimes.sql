-- name: every type
select * from moments order by id;
-- name: date arithmetic
select date '2024-02-28' + 2, date '2024-03-01' - date '2024-02-01', date '2024-01-31' + interval '1 month', date '2024-01-01' - 7, date '2024-05-01' + time '12:30', 3 + date '2024-01-01';
-- name: infinite dates
select id, day + 1, day - 1, day = 'infinity', isfinite(local), day > date '5874897-12-31', local - interval '1 day' from moments where id in (3, 4, 7) order by id;
-- name: difference with infinity
select day - date '2000-01-01' from moments where id = 3;
-- name: date out of range
select day + 1 from moments where id = 6;
-- name: timestamp arithmetic
select timestamp '2024-03-31 12:00' + interval '1 month', timestamp '2024-03-31' - interval '1 month', timestamp '2024-03-01' - timestamp '2023-12-31 06:00', timestamptz '2024-03-31 00:30+00' + interval '1 day', timestamp '2024-01-01' + interval '1 mon -1 day 02:00';
-- name: timestamp out of range
select local + interval '1 year' from moments where id = 6;
-- name: intervals
select interval '1 year 2 months 3 days 4 hours 5 minutes 6.789 seconds', interval '1-2' year to month, interval '3 4:05:06', interval 'P1Y2M3DT4H5M6S', interval '-1 day +02:00', interval '1.5 months', interval '2 weeks ago', interval '90' minute, interval '1 day 25:00';
-- name: interval arithmetic
select length * 2, length / 2, -length, length + interval '1 hour', length - interval '1 day', length * 1.5 from moments where id in (1, 2, 7, 10) order by id;
-- name: interval comparison
select id, length = interval '30 days', length > interval '1 mon', length < '00:00' from moments order by id;
-- name: interval division by zero
select interval '1 day' / 0;
-- name: justify
select justify_days(interval '65 days'), justify_hours(interval '50 hours'), justify_interval(interval '1 mon -1 hour'), make_interval(years => 1, days => 2, secs => 3.5), age(timestamp '2024-03-01', timestamp '2023-01-31'), age(date '2000-02-29', date '1999-03-01');
-- name: extract of timestamps
select extract(year from local), extract(quarter from local), extract(week from local), extract(isoyear from local), extract(dow from local), extract(isodow from local), extract(doy from local), extract(epoch from local), extract(microseconds from local), extract(century from local), extract(julian from local) from moments where id in (1, 2, 5, 7, 12) order by id;
-- name: extract of infinity
select extract(year from local), extract(epoch from local), extract(month from local) from moments where id in (3, 4) order by id;
-- name: extract of other types
select extract(day from date '2024-02-29'), extract(hour from time '12:34:56'), extract(second from time '12:34:56.789'), extract(epoch from interval '1 mon 2 days'), extract(day from interval '40 days 25:00'), extract(timezone from zoned_clock), date_part('hour', instant), date_part('epoch', length) from moments where id = 1;
-- name: extract of an unknown field
select extract(fortnight from local) from moments;
-- name: extract of a field that does not fit
select extract(hour from day) from moments;
-- name: date_trunc
select date_trunc('hour', local), date_trunc('week', local), date_trunc('quarter', local), date_trunc('month', instant), date_trunc('day', length), date_trunc('decade', local), date_trunc('day', instant, 'Asia/Tokyo') from moments where id in (1, 2, 7, 10, 12) order by id;
-- name: date_bin
select date_bin('15 minutes', timestamp '2024-02-29 12:34:56', timestamp '2001-01-01'), date_bin('1 day', timestamptz '2024-02-29 12:34:56+00', timestamptz '2001-01-01 03:00+00');
-- name: time zones
select instant at time zone 'Europe/Berlin', local at time zone 'America/New_York', instant at time zone 'UTC', instant at time zone interval '-3 hours', zoned_clock at time zone 'UTC' from moments where id in (1, 2, 8, 10, 11) order by id;
-- name: hours that do not exist or exist twice
select timestamp '2024-03-31 02:30' at time zone 'Europe/Berlin', timestamp '2024-10-27 02:30' at time zone 'Europe/Berlin', timestamptz '2024-10-27 00:30+00' at time zone 'Europe/Berlin', timestamptz '1893-03-31 23:00+00' at time zone 'Europe/Berlin';
-- name: time zone that does not exist
select instant at time zone 'Mars/Olympus' from moments where id = 1;
-- name: zones in texts
select timestamptz '2024-01-01 12:00 Europe/Paris', timestamptz '2024-07-01 12:00 PST', timestamptz '2024-07-01 12:00-03:30', timestamptz '20240701T120000Z', time with time zone '12:00 EST';
-- name: input forms
select date 'January 8, 1999', date '1999-Jan-08', date '08-Jan-99', date '19990108', date 'J2451187', date 'epoch', timestamp '1999-01-08 04:05:06 PM', timestamp 'epoch', date '1/8/1999', time '040506', time '04:05 AM';
-- name: bad date
select date '2024-02-30';
-- name: bad date text
select 'not a date'::date;
-- name: field out of range
select timestamp '2024-13-01';
-- name: casts
select local::date, local::time, instant::date, day::timestamp, clock::interval, instant::timestamp, length::time, local::timestamptz, clock::timetz from moments where id in (1, 8, 10) order by id;
-- name: precision
select timestamp(2) '2024-01-01 00:00:00.12567', time(0) '23:59:59.7', local::timestamp(3), interval(1) '1.26 seconds', '12:34:56.7891'::time(2) from moments where id = 1;
-- name: comparison across types
select id from moments where day < timestamp '2024-03-01' and instant >= date '1999-01-01' and local <> day order by id;
-- name: to_char of timestamps
select to_char(local, 'YYYY-MM-DD HH24:MI:SS.US'), to_char(local, 'FMDay, FMDDth FMMonth YYYY'), to_char(local, 'Dy DD Mon YY HH12:MI AM'), to_char(local, 'IYYY-IW-ID Q J DDD'), to_char(instant, 'TZ OF') from moments where id in (1, 2, 12) order by id;
-- name: to_date and to_timestamp
select to_date('05 Dec 2000', 'DD Mon YYYY'), to_timestamp('2024-02-29 13:45', 'YYYY-MM-DD HH24:MI'), to_timestamp(1709210096.5), to_date('2024-060', 'YYYY-DDD');
-- name: making dates
select make_date(2024, 2, 29), make_time(8, 15, 23.5), make_timestamp(2024, 7, 1, 8, 15, 0.5), make_timestamptz(2024, 7, 1, 8, 15, 0, 'Europe/Berlin');
-- name: making a bad date
select make_date(2023, 2, 29);
-- name: overlaps
select (date '2024-01-01', date '2024-02-01') overlaps (date '2024-01-15', interval '1 year'), (time '10:00', time '11:00') overlaps (time '11:00', time '12:00');
-- name: series of timestamps
select g, g::date - date '2024-01-31' as days from generate_series(timestamp '2024-01-31', timestamp '2024-05-31', interval '1 month') g order by g;
-- name: group by month
select date_trunc('month', ordered) as month, count(*), count(*) filter (where status = 'returned') from orders group by 1 order by 1 limit 6;
-- name: days between
select id, shipped - ordered::date as days, ordered + 2 * interval '1 day' > shipped as quick from orders where shipped is not null and id <= 12 order by id;
-- name: time arithmetic
select time '23:30' + interval '1 hour', time '01:00' - interval '90 minutes', time '12:00' - time '08:30', timetz '12:00+02' = timetz '10:00+00', timetz '12:00+02' + interval '13 hours';
-- name: stable functions agree
select now() = current_timestamp, now() = transaction_timestamp(), current_date = now()::date, localtimestamp = now()::timestamp, clock_timestamp() >= now();
-- name: to_date with pictures
select t, p, to_date(t, p) from (values ('2024-02-29', 'YYYY-MM-DD'), ('05 Dec 2000', 'DD Mon YYYY'), ('20000431', 'YYYYMM'), ('12/31/99', 'MM/DD/YY'), (' 2024 / 3 /  7', 'YYYY/MM/DD'), ('2024-366', 'YYYY-DDD'), ('2024-05', 'YYYY-WW'), ('2024-05-3', 'IYYY-IW-ID'), ('2024-05', 'IYYY-IW'), ('2024-140', 'IYYY-IDDD'), ('2451545', 'J'), ('21', 'CC'), ('20 05', 'CC YY'), ('44-03-15 BC', 'YYYY-MM-DD BC'), ('15 March 2024', 'DD Month YYYY'), ('tuesday 3 xii 1999', 'Day DD RM YYYY'), ('1,999-12-31', 'Y,YYY-MM-DD'), ('24', 'YY'), ('3rd of may 2020', 'DDth "of" Mon YYYY'), ('2024 2', 'YYYY Q'), ('999', 'YYY'), ('5', 'Y'), ('31 04', 'DD MM'), ('2020 3 2', 'YYYY MM W'), ('', 'YYYY'), ('2024-1-2', 'FMYYYY-FMMM-FMDD'), ('2024+1*2', 'YYYY-MM-DD'), ('20241', 'YYYYDDD'), ('a.d. 2020', 'A.D. YYYY')) v(t, p);
-- name: to_timestamp with pictures
select t, p, to_timestamp(t, p) from (values ('2024-02-29 13:05:06', 'YYYY-MM-DD HH24:MI:SS'), ('2024-02-29 01:05:06.789 pm', 'YYYY-MM-DD HH12:MI:SS.MS am'), ('12:00 AM', 'HH:MI AM'), ('12:00 p.m.', 'HH12:MI A.M.'), ('2000-01-01 00:00:00.25', 'YYYY-MM-DD HH24:MI:SS.MS'), ('2000-01-01 12:30:00.123456', 'YYYY-MM-DD HH24:MI:SS.US'), ('2000-01-01 12:30:00.1234', 'YYYY-MM-DD HH24:MI:SS.FF3'), ('86399', 'SSSS'), ('2011-12-18 11:38 +05', 'YYYY-MM-DD HH12:MI TZH'), ('2011-12-18 11:38 -05:20', 'YYYY-MM-DD HH12:MI TZH:TZM'), ('2011-12-18 11:38-05', 'YYYY-MM-DD HH24:MI TZH'), ('2011-12-18 11:38 20', 'YYYY-MM-DD HH12:MI TZM'), ('97/Feb/16', 'YYMonDD'), ('1985 January 12', 'YYYY Month DD'), ('My birthday-> Year: 1976, Month: May, Day: 16', '"My birthday-> Year:" YYYY, "Month:" FMMonth, "Day:" DD'), ('1,582nd VIII 21', 'Y,YYYth FMRM DD'), ('15 "text between quote marks" 98 54 45', E'HH24 "\\"text between quote marks\\"" YY MI SS'), ('05121445482000', 'MMDDHH24MISSYYYY'), ('2000January09Sunday', 'YYYYFMMonthDDFMDay'), ('19971116', 'YYYYMMDD'), ('20000-1116', 'YYYY-MMDD'), ('9-1116', 'Y-MMDD'), ('2005527', 'IYYYIWID'), ('  20050302', 'YYYYMMDD'), ('2000  +   JUN', 'YYYY/MON'), ('2000 -JUN', 'YYYY//MON'), ('2000 + -', 'YYYY'), ('10:20 2024', 'FXHH24:MI YYYY'), ('2018-11-02 12:34:56.1', 'YYYY-MM-DD HH24:MI:SS.FF6')) v(t, p);
-- name: to_date of no date
select to_date('2024-02-30', 'YYYY-MM-DD');
-- name: to_date of no month
select to_date('2024-13-01', 'YYYY-MM-DD');
-- name: to_date of too many days
select to_date('2023 366', 'YYYY DDD');
-- name: to_date of no name
select to_date('2024 Foo 01', 'YYYY Mon DD');
-- name: to_date of no number
select to_date('abcd', 'YYYY');
-- name: to_date of a short text
select to_date('199', 'YYYYMMDD');
-- name: to_date of a short text with a field after it
select to_date('1999', 'YYYYMM'), to_date('19991', 'YYYYMM');
-- name: to_date of a number that is too short
select to_date('1 99', 'MMYYYY');
-- name: to_date of conflicting fields
select to_date('2024 2023', 'YYYY YYYY');
-- name: to_date of two conventions
select to_date('2024 05', 'IYYY MM');
-- name: to_date of a day without a year
select to_date('100', 'DDD');
-- name: to_date of a number that is too large
select to_date('99999999999', 'YYYY');
-- name: to_date of a year that is too late
select to_date('9999999-01-01', 'YYYY-MM-DD');
-- name: to_timestamp of hour 13
select to_timestamp('13:00', 'HH12:MI');
-- name: to_timestamp of minute 60
select to_timestamp('2024-01-01 10:60', 'YYYY-MM-DD HH24:MI');
-- name: to_timestamp of a zone that is too far
select to_timestamp('2024-01-01 10:00 +16', 'YYYY-MM-DD HH24:MI TZH');
-- name: to_timestamp of a year that is too late
select to_timestamp('300000-01-01', 'YYYY-MM-DD');
-- name: to_timestamp of an offset
select to_timestamp('2011-12-18 11:38 -05:20', 'YYYY-MM-DD HH12:MI OF'), to_timestamp('2011-12-18 11:38 +5', 'YYYY-MM-DD HH12:MI TZ');
-- name: to_date of null
select to_date(null, 'YYYY'), to_date('2024', null), to_timestamp(null, null);
-- name: to_date of a column
select id, to_date(to_char(ordered, 'YYYY-MM-DD'), 'YYYY-MM-DD') = ordered::date from orders where id < 6 order by id;
