-- The cases of the files input-*.txt, which are the output of this script. For example:
--   psql -X -q -v ON_ERROR_STOP=1 -v part=dates -f input-cases.sql postgres > input-18-dates.txt
-- A line has the settings, the type's OID and name, the modifier, the input, and then either `=`, the
-- output text and the binary format in hexadecimal, or the SQLSTATE, message, detail and hint.
begin;
set local timezone = 'UTC';
set local client_min_messages = error;
create type mood as enum ('sad', 'ok', 'so so');
create type pair as (a int4, b text);
create type nested as (p pair, l int4[], m mood);
create type floatrange as range (subtype = float8);
create type timerange as range (subtype = time);

create function modifier(ty text) returns int language plpgsql as $$
declare m int;
begin
  execute format('create temp table modified (c %s)', ty);
  select atttypmod into m from pg_attribute where attrelid = 'modified'::regclass and attnum = 1;
  drop table modified;
  return m;
end $$;

create function outcome(ty text, txt text) returns text[] language plpgsql as $$
declare t pg_type; f pg_proc; call text; res text[]; s text; m text; d text; h text;
begin
  select * into t from pg_type where oid = ty::regtype;
  select * into f from pg_proc where oid = t.typinput;
  if f.prorettype in ('anyarray'::regtype, 'anyenum'::regtype, 'anyrange'::regtype,
      'anymultirange'::regtype, 'record'::regtype) then
    call := format('%L::%s', txt, ty);
  else
    call := format('%s(%L::cstring%s)', t.typinput, txt, case f.pronargs
      when 3 then format(', %s::oid, %s', case when t.typelem <> 0 then t.typelem else t.oid end, modifier(ty))
      when 2 then format(', %s::oid', t.oid) else '' end);
  end if;
  execute format('select array[''='', %s(v)::text, encode(%s(v), ''hex'')] from (select %s as v) s',
    t.typoutput, case when t.typsend = 0 then 'byteasend(null::bytea)||byteasend' else t.typsend::text end, call)
    into res;
  return res;
exception when others then
  get stacked diagnostics s = returned_sqlstate, m = message_text, d = pg_exception_detail, h = pg_exception_hint;
  return array[s, m, d, h];
end $$;

create temp table cases (id serial, part text default current_setting('cases.part'), settings text, ty text, txt text);
create function add(settings text, ty text, txts text[]) returns void language sql as
  'insert into cases (settings, ty, txt) select $1, $2, unnest($3)';

\o /dev/null
set local cases.part = 'scalars';
select add('default', unnest(array['int2', 'int4', 'int8']), array['0', '-1', '+7', ' 12 ', '32767', '32768', '-32768',
  '-32769', '2147483647', '2147483648', '-2147483648', '-2147483649', '9223372036854775807',
  '9223372036854775808', '-9223372036854775808', '-9223372036854775809', '99999999999999999999999', '', ' ',
  '1 2', '1x', 'x', '0x1F', '0X7f', '-0x10', '0o17', '0b101', '0b102', '0x', '0x_1F', '0x1_F', '0x1__F', '0x1F_',
  '1_000', '1__000', '_1', '1_', '0_1', '+_1', '-', '+', '--1', '2147483650x', '0x8000', '-0x8000', '0x80000000',
  '-0x80000000', '0x7FFFFFFFFFFFFFFF', '0x8000000000000000', '-0x8000000000000000', '1.0', '1e3', E'\t5\n', '٣']);
select add('default', unnest(array['oid', 'xid', 'cid', 'xid8']), array['0', '1', ' 42 ', '4294967295', '4294967296', '-1', '-2147483648',
  '-2147483649', '010', '0x10', '09', '', ' ', 'x', '1x', '1 2', '99999999999999999999999', '18446744073709551615', '18446744073709551616']);
select add('default', unnest(array['float4', 'float8']), array['0', '-0', '1', '1.5', ' 1.5 ', '.5', '5.', '.', '1e10', '1e', '1e+', '1E-3', '1e400', '-1e400',
  '1e-400', '1e39', '1e-46', '1e-45', '4.9e-324', '2e-324', '3.4028235e38', '3.4028236e38', '1.7976931348623157e308',
  '1.7976931348623159e308', 'NaN', 'nan', 'Infinity', '-Infinity', '+infinity', 'inf', '-INF', 'infin', 'NaNx', '', ' ', 'x', '1x', '1 2',
  '0.1', '16777217', '9007199254740993', '1.00000005960464477539062500', '1.0000000596046448', '0e999999', '123456789012345678901234567890', '--1', '1_000', '7.038531e-26']);
select add('default', 'numeric', array['0', '-0', '0.0', '1', '-1.50', ' 12.340 ', '.5', '5.', '.', '1e10', '1e-10', '1.5e3', '1.5e+0', '1e', '1e+', '1E5', '123456789012345678901234567890.123456789',
  '10000', '9999', '99999999', '0.0001', '0.00001', '100000000', '1000000.0000001', '0001.1000', 'NaN', 'nan', 'Infinity', '-inf', '+Infinity', 'inf', 'infinit', '+NaN', '-NaN', 'NaN x', '', ' ', 'x', '1x', '1..2', '1.2.3', '1_000.5', '1_000', '1__0', '1_', '_1', '1._5', '1.5_5', '1_.5', '1e1_0',
  '0x1F', '-0xff', '0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF', '0o777', '0b1111', '0x', '0x1.5', '0x1_F', '0x_F', '0b2', '1e131072', '1e-300', '1e300', '1e-16384', '1e1000000', '1e9999999999', '1e-9999999999', '12e-3', '0e10', '0e-5', repeat('9', 50) || '.' || repeat('8', 30), '- 1', '1 e5', '+5', '1e0', '0.1e1', '100e-2', '00000000000000000000.5']);
select add('default', 'numeric(5,2)', array['1', '1.005', '999.994', '999.995', '1000', '-999.99', '-1000', 'NaN', 'Infinity', '-Infinity', '0.001', '1e2', '1e3', '99999', '0.005', '-0.005', '0.0049']);
select add('default', 'numeric(3,0)', array['999', '999.4', '999.5', '0.5', '0.4', '1000', '-0.5']);
select add('default', 'numeric(2,2)', array['0.99', '0.994', '0.995', '1', '0.5', '-0.999']);
select add('default', 'numeric(10)', array['1234567890', '12345678901', '1.5', '2.5']);
select add('default', 'numeric(3,-2)', array['12345', '99949', '99950', '149', '150', '50', '49', '-50']);
select add('default', 'numeric(2,4)', array['0.0099', '0.01', '0.00994', '0.00995', '0.0001']);
select add('default', 'money', array['1', '$1', '-1', '$-1', '-$1', '($1.5)', '1.5', '1.555', '1.554', '1,234.56', '$1,234,567.89', '92233720368547758.07', '92233720368547758.08', '-92233720368547758.08', '-92233720368547758.09', '', 'x', '1x', '12.', '.5', '1 2', ' 5 ', '5-', '+5', '$', '1$', '(5', '5)', '1.005', '1.004']);
select add('default', 'bool', array['t', 'f', 'true', 'FALSE', 'tr', 'y', 'n', 'yes', 'No', 'on', 'of', 'off', 'o', '1', '0', ' t ', '', ' ', '2', '11', 'truex', 'yess', 'tRuE', 'offf']);
select add('default', 'text', array['', ' ', 'abc', 'é', E'a\nb\tc\\d']);
select add('default', 'varchar(3)', array['', 'abc', 'abcd', 'abc  ', 'abc d', 'äöü', 'äöüx', 'ab', '日本語', '日本語 ']);
select add('default', 'varchar', array['abcdef', ' x ']);
select add('default', 'char(3)', array['', 'a', 'abc', 'abcd', 'abc  ', 'abc x', 'äö', 'äöüx']);
select add('default', 'bpchar', array['a ', 'abc  ', '']);
select add('default', 'name', array['', 'abc', repeat('x', 63), repeat('x', 64), repeat('ä', 40), repeat('x', 62) || 'ä']);
select add('default', '"char"', array['', 'a', 'ab', '\101', '\377', '\400', '\1011', 'é', '\000', '\08', '\']);
select add('default', 'bytea', array['', 'abc', '\x', '\x00ff', '\xDEADbeef', '\x 00 ff ', '\x0', '\x0g', '\xg0', '\x0 0', '\\', 'a\\b', '\000', '\377', '\400', '\18', '\', 'a\', '\x0é', 'é', E'\\x00\t01\n02']);
select add('default', 'uuid', array['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}', 'a0eebc999c0b4ef8bb6d6bb9bd380a11', 'a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111', '', 'g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11', ' a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a0e-ebc999c0b4ef8bb6d6bb9bd380a11']);
select add('default', 'tid', array['(0,0)', '(1,2)', '(4294967295,65535)', '(4294967296,1)', '(1,65536)', '(-1,1)', '(1,-1)', '1,2', '(1)', '(1,2', '( 1 , 2 )', '( 1, 2)', '(a,b)', '', '(1,2)x', '(-2147483648,1)', '(-2147483649,1)', '(,)']);
select add('default', 'pg_lsn', array['0/0', '16/B374D848', 'FFFFFFFF/FFFFFFFF', '1/123456789', '/1', '1/', '', 'g/1', ' 1/1', '1/1 ', '00000001/00000001', '000000001/1', 'ab/cd']);
select add('default', 'pg_snapshot', array['1:1:', '10:20:', '10:20:10,14,15', '10:20:10,10', '10:20:15,14', '20:10:', '0:1:', '10:20:9', '10:20:20', '10:20', '10:20:10,', '10:20:a', '', '10:20:10 ']);
select add('default', 'bit', array['1', '0', '', '10', 'b1', 'x8']);
select add('default', 'bit(4)', array['1010', 'b1010', 'B0101', 'xA', 'Xf', '101', '10101', '', 'xab', '102', 'xg', 'é', '10 1']);
select add('default', 'varbit', array['', '1', '101010101', 'x123', 'b', 'x', '2', 'xyz', 'é']);
select add('default', 'varbit(4)', array['', '1', '1010', '10101', 'xa', 'xab']);
select add('default', 'int2vector', array['', '1', '1 2 3', ' 1  2 ', '32768', 'x', '1,2', '-5', '1 x']);
select add('default', 'oidvector', array['', '1', '1 2 3', ' 1  2 ', '4294967296', 'x', '1,2', '-1', '1 x']);


set local cases.part = 'dates';
select add(unnest(array['default', 'dmy', 'ymd']), 'date', array['1/8/1999', '1/18/1999', '18/1/1999', '01/02/03', '99-01-08', '08-Jan-99', 'Jan-08-99', '99-Jan-08', '08-Jan-1999', '1999-Jan-08', 'Jan 8 99', '8 Jan 99', '99 Jan 8', '1.8.99', '1999.1.8', '99 08 Jan', '990108', '19990108', '12 13 14', 'January 99 8', '99 1 8', '1-8-1999', '1/8', '31/12/99']);
select add('default', 'date', array['2024-02-29', '2023-02-29', '1999-01-08', 'January 8, 1999', 'J2451187', 'J0', 'J-1', 'julian 2451187', 'jd 2451187', 'January 8, 99 BC', '2024-13-01', '2024-12-32', '2024-00-01', '0000-01-01', '0001-01-01 BC', '4714-11-24 BC', '4714-11-23 BC', '5874897-12-31', '5874898-01-01', 'infinity', '-infinity', '+infinity', 'epoch', 'now', 'today', 'tomorrow', 'yesterday', 'today 12:00', '1999.008', '1999.366', '2000.366', '1999 008', '99008', '2024-02-29 12:00', '2024-02-29 25:00', '2024-02-29T12:00:00Z', 'Thu Feb 29 2024', 'Thursday, 29 February 2024', 'Feb 29', '2024', '', ' ', 'x', '2024-02-29x', '2024-02-29 x', '1999-1-1-1', '1999/01/08', '1999_01_08', '1999,01,08', '24-02-29', '2024-2-9', '20240229', '240229', '2024029', '02292024', 'sept 5 2020', 'may5 2020', '5may2020', '2020may5', 'aug-5-2020', 'infinity x', '1999-01-08 BC', '10000-01-01', '100000-01-01', '2024-02-29 BC AD', '2024-02-29 monday tuesday', '2024-02-30 BC', '5 5 5', '0-1-1', '00-1-1', '70-1-1', '69-12-31', '1 1 100', 'é', repeat('1', 200), '2024-01-01 allballs', 'on 2024-01-01', '2024-02-29 dst', 'y2024m02d29', 'd 5', 'invalid', '2147483648-01-01', '2001-02-03 04:05:06.7 PM', '2001-02-03 +25', '-44-03-15', '2000-01-01 24:00:00', '1997-02-10 foo/bar', '1997-02-10 europe/berlin']);
select add('default', 'time', array['04:05:06.789', '04:05:06', '04:05', '040506', '0405', '040506.789', '04:05 AM', '04:05 PM', '12:00 AM', '12:00 PM', '13:00 PM', '13:00 AM', '0:0:0', '24:00:00', '24:00:01', '24:00', '23:59:60', '23:59:59.9999999', '23:60:00', '25:00', '04:05:06 PST', '04:05:06+01', '2003-04-12 04:05:06 America/New_York', '04:05:06 America/New_York', '04:05:06 UTC', 'allballs', 'now', 'today', '', 'x', '4', '04', '1:2:3', '04:05:06.', '04:05.5', '04:05:61', '-04:05', 't040506', 'T 04:05:06', 't04:05:06', '2024-01-01 12:00', '1200:00', '04:05:06 bc', '04:05:06 j2451187', 'infinity', '12:34:56.1234567', '12:34:56.1234565', '4 pm', '04:05 pm am', '1e5', '99999999999:00']);
select add('default', 'time(2)', array['04:05:06.789', '23:59:59.999', '04:05:06.785', '04:05:06.784999', '04:05:06.795']);
select add('default', 'time(0)', array['04:05:06.5', '04:05:05.5', '23:59:59.5', '04:05:06.499999']);
select add(unnest(array['default', 'Europe/Berlin']), 'timetz', array['04:05:06.789-8', '04:05:06-08:00', '04:05-08:00', '040506-08', '040506+0730', '040506+07:30:45', '04:05:06 PST', '04:05:06 CEST', '04:05:06', '2003-04-12 04:05:06 America/New_York', '2003-01-12 04:05:06 America/New_York', '04:05:06 America/New_York', '04:05:06 UTC', '04:05:06 Etc/GMT+5', '04:05:06 z', 'allballs', 'now', '04:05:06+16', '04:05:06+15:59:59', '04:05:06 +1 +2', '24:00:00+00', '04:05:06 PST DST', '04:05:06 foo', '04:05:06 foo/bar', 'today', '', '04:05:06 msk', '2003-01-12 04:05:06 msk', '2003-07-12 04:05:06', '2003-07-12 04:05:06 CET', '04:05-0800', '04:05:06 pm +3', '04:05:06 2003-01-12', 'j2451187.5', '2003-04-12 040506-08']);
select add('default', 'timetz(1)', array['04:05:06.789+03', '04:05:06.75-03']);
select add('default', 'timestamp', array['1999-01-08 04:05:06', '1999-01-08 04:05:06 -8:00', '1999-01-08T04:05:06', '1999-01-08T04:05:06.789Z', '1999-01-08t04:05', '19990108T040506', '19990108T040506.789', '19990108 040506', '1999010804', '199901080405', '20011225T040506.789-07', 'January 8 04:05:06 1999 PST', 'Jan 8 1999 04:05:06.7891234', 'Fri Jan 8 04:05:06 1999', '1999-01-08 04:05:06 BC', 'infinity', '-infinity', '+infinity', 'epoch', 'now', 'today', 'tomorrow', 'yesterday', 'yesterday 04:05:06', 'tomorrow 12:00 PM', 'today allballs', 'now 12:00', '294276-12-31 23:59:59.999999', '294277-01-01', '4714-11-24 00:00 BC', '4714-11-23 23:59 BC', '4713-01-01 BC', '2024-02-29 24:00:00', '2024-02-29 24:00:01', '2024-02-29 23:59:60', '2024-02-29 23:59:60.5', '1999-01-08 04:05:06.9999999', '1999-01-08 04:05:06.123456789', '1999-01-08 04:05:06.5555555', '1999-01-08', '04:05:06', '', 'x', '1999-01-08 04', '1999-01-08 0405', '1999-01-08 04:05:06.7 AM', '1999-01-08 13:05 AM', '1999-01-08 12:05 AM', '1999-01-08 12:05 PM', '1999-01-08 04:05:06 foo', '1999-01-08 04:05:06 foo/bar', '1999-01-08 04:05:06 America/New_York', '1999-01-08 04:05:06+25', '1999-01-08 04:05:06+5:75', '1999-01-08 04:05:06+05:30', 'J2451187', 'J2451187.5', 'J2451187 04:05:06', 'J2451187.123456', 'J2451187-05', '2451187', 'julian 2451187.25', '1999.008 04:05', '97038 152327', '970207 152327', '1997038 152327', '1997-02-07 15.23.27', 'Feb-7-1997 15:23:27', '2-7-1997 15:23:27', '7/2/97', 'Thu Feb 29 12:00:00.5 2024 UTC', '2024-W01-1', 'y1999 m01 d08', '1999-01-08 pm', '12:00 1999-01-08', '04:05 PM Jan 8, 1999', '1999-01-08  04:05:06  ', E'1999-01-08\n04:05:06', '(1999-01-08)', '"1999-01-08"', '1999-01-08 04:05:06 z', '1999-01-08 04:05:06z', '1999-01-08 04:05:06 PST8PDT', '1999-01-08 04:05:06 MET DST', '1999-01-08 04:05:06 EST5EDT,M3.2.0,M11.1.0', '1 2 3 4:5:6', '2001-02-03T', '2001-02-03 T 04:05:06', '2001-02-03 at 04:05', '100000-01-01 00:00', '10000101', '1000001', '2024-06-31', '2024-02-29 04:05:06,789', '2024-2-29 4:5:6']);
select add('default', 'timestamp(0)', array['1999-01-08 04:05:06.5', '1999-01-08 04:05:05.5', '1999-01-08 04:05:06.499999', '1969-12-31 23:59:58.5', '1969-12-31 23:59:59.5', 'infinity', '-infinity', '1999-12-31 23:59:59.5']);
select add('default', 'timestamp(3)', array['1999-01-08 04:05:06.7895', '1999-01-08 04:05:06.78949', '1999-01-08 04:05:06.7885', '2100-01-01 00:00:00.0005', '1950-01-01 00:00:00.0005']);
select add(unnest(array['default', 'Europe/Berlin', 'America/New_York']), 'timestamptz', array['1999-01-08 04:05:06', '1999-07-08 04:05:06', '1999-01-08 04:05:06 -8:00', '1999-01-08 04:05:06+00', '1999-01-08 04:05:06.789 PST', '1999-07-08 04:05:06 PDT', '1999-07-08 04:05:06 CET', '1999-07-08 04:05:06 MET DST', '1999-07-08 04:05:06 CET DST', '1999-07-08 04:05:06 America/New_York', '1999-01-08 04:05:06 america/new_york', '1999-07-08 04:05:06 Europe/Berlin', '1999-07-08 04:05:06 UTC', '1999-07-08 04:05:06 zulu', '2024-03-31 01:59:59', '2024-03-31 02:00', '2024-03-31 02:30', '2024-03-31 03:00', '2024-10-27 01:59:59', '2024-10-27 02:00', '2024-10-27 02:30', '2024-10-27 03:00', '2024-03-10 02:30', '2024-11-03 01:30', '2024-11-03 02:00', '2024-03-31 02:30 Europe/Berlin', '2024-10-27 02:30 Europe/Berlin', '2024-10-27 02:30 CEST', '1880-01-01 00:00', '1893-04-01 00:00', '2090-07-01 12:00', '1990-07-01 12:00 MSK', '2000-07-01 12:00 MSK', '2012-07-01 12:00 MSK', '2012-07-01 12:00 IST', '2000-07-01 12:00 MSD', 'infinity', '-infinity', 'epoch', 'now', 'today', 'tomorrow', 'yesterday', 'today 12:00 PST', '294276-12-31 23:59:59.999999+00', '294277-01-01 00:00:00+00', '294277-01-01 00:00:00+01', '4714-11-24 00:00:00+00 BC', '4714-11-24 00:00:00+01 BC', '4714-11-24 00:00:00-01 BC', '2024-01-01 00:00 nowhere', '2024-01-01 00:00 No/Where', '2024-01-01 00:00+16', '2024-01-01 00:00-15:59:59', '2024-01-01 00:00 EST5EDT', '2024-07-01 00:00 <+03>-3', '20011225T040506.789-07', '20011225 040506+0530', 'J2451187-08', 'J2451187+08', '2024-01-01 00:00 LMT', '2024-07-01 00:00 est', '2024-01-01 00:00 +1 PST', '2024-01-01 00:00 dst']);
select add('default', 'timestamptz(2)', array['1999-01-08 04:05:06.785+00', '1999-01-08 04:05:06.795 PST']);
set local cases.part = 'intervals';
select add(unnest(array['default', 'sql_standard']), 'interval', array['1 day', '1-2', '-1-2', '1-2 3 4:05:06', '-1-2 3 4:05:06', '-1 1:00:00', '-1 -1:00:00', '1 -1:00:00', '1 year 2 mons -3 days +04:05:06', '-5 days 3 hours', '@ 1 minute', '1 day ago', '@ 1 day 2 hours ago', '3 4:05', '4:05.5', '-1:00', '1', '-1', '1.5', '-1.5 days 2:00', '+1-2', '-1 year 2 months']);
select add('default', 'interval', array['0', '00:00', '1.5 days', '1.5 months', '1.5 years', '1.04 years', '1.5 weeks', '0.5 weeks', '1.1 months', '1.0333333 mon', '2.5 hours', '1.5 minutes', '1.5 seconds', '1.0000005 seconds', '1.0000015 seconds', '5 milliseconds', '1.5 ms', '7 us', '1.5 us', '1.6 us', '1 decade', '1 century', '1 millennium', '1.5 decades', '1.25 centuries', '2 c', '3 mil', '1 quarter', '1 qtr', '1 timezone', '1 d 2 h 3 m 4 s', '1y2mon3d', '1d2h', '1 y', '1 month 1 months', '1 day 1 day', '1 hour 01:00', '1:2:3', '1:2:3.4', '1:60', '100:00:00', '-100:00:00', '1:2:3 4', '1 1:2:3', '1 day 1:2:3', '1:2:3 ago', '1 ago', 'ago', 'ago 1 day', '1 day ago ago', '1 year ago 2 days', 'day', '1 day day', 'day 1', '1 fortnight', '', ' ', 'x', '1x', '1 2', '1-13', '1-12', '1-2-3', '-0-1', '1-', '1.5-2', '+5', '- 5 days', '+ 5 days', '5 days -', '1,000 days', '1 day, 2 hours', '1e3 days', '.5 days', '5. days', '178956970 years', '178956971 years', '178956970 years 8 months', '2147483647 months', '2147483648 months', '-2147483648 months', '2147483647 days', '2147483648 days', '-2147483648 days', '-2147483648 days ago', '2147483647 hours', '2562047788:00:54.775807', '2562047788:00:54.775808', '-2562047788:00:54.775807', '9223372036854775807 us', '9223372036854775808 us', '-9223372036854775808 us', '9223372036854775807 us 1 us', '99999999999999999999 days', 'infinity', '-infinity', '+infinity', 'infinity ago', '1 day infinity', 'infinity 1 day', 'Infinity', 'now', 'epoch', 'P1Y2M3DT4H5M6S', 'P1Y', 'P1M', 'PT1M', 'P1W', 'P1.5D', 'P1,5D', 'PT1.5S', 'P-1Y-2M3DT-4H', 'P', 'PT', 'P1', 'P1YT', 'p1y', 'P1S', 'PT1D', 'P0001-02-03T04:05:06', 'P0001-02-03', 'P0001-02', 'P00010203', 'P00010203T040506', 'P1-2-3T4:5:6', 'P1Y-2M', 'PT040506', 'PT04:05', 'PT04:05:06.7', 'P1-2T', 'P1T2H', 'P1YX', 'P 1Y', 'P1e2Y', 'P1000000000000000Y', 'P10000000000000000D', 'P99999999999Y', 'PT2562047788H54.775807S', 'P1Y1Y', 'P1D1Y', 'P2Y 3M', 'P-00010203', '1 microseconds', '1 millisecond', '1 microsecond', '2 usecs', '1 mils', 'one day', repeat('1 ', 300), repeat('1', 260), 'é', '1.5 mons 1.5 days', '0.99999999 seconds', '-0.5 months', '-1.5 years', '1 mon -1 day', '0.1 months 0.1 days', '1 m', '1 mm', '1 dec', '1 cent', '1 hr 2 min 3 secs', '3 yrs 2 wks', '3 weeks 2 days', 'mon', 'j 5', '5 j', 'at 5 days', '1.123456789 s', '1 day 00:00:60', '1 day 00:60:00', '1.5 quarter', '2 w', '1-2 years', '1 year-2', '1:2:3:4', '1:', ':1', '1::2', '00:00:00.0000005', '00:00:00.0000015', '1 -00:00:01', '1-2 -3 -4:05:06', '5 5:', '1..5 days']);
select add('default', 'interval year', array['1', '1-2', '1 year 14 months', '1 day', '1.9 years']);
select add('default', 'interval month', array['1', '1-2', '5 days', '1.5']);
select add('default', 'interval day', array['1', '1 2:03', '36:00', '1.5']);
select add('default', 'interval hour', array['1', '1:59:59', '1.5', '-1:59']);
select add('default', 'interval minute', array['1', '1:59:59', '90']);
select add('default', 'interval second', array['1', '1:59:59.5', '90', '0.5']);
select add('default', 'interval year to month', array['1', '1-2', '1 year 2 months 3 days', '18']);
select add('default', 'interval day to hour', array['1', '1 2', '1 2:03', '1 day 2:59']);
select add('default', 'interval day to minute', array['1', '1 2:03', '1 2:03:04', '2:03:04']);
select add('default', 'interval day to second', array['1', '1 2:03', '1 2:03:04.5']);
select add('default', 'interval hour to minute', array['1', '1:02', '1:02:03']);
select add('default', 'interval hour to second', array['1', '1:02', '1:02:03.4']);
select add('default', 'interval minute to second', array['1', '1:02', '1:02:03', '1:02.5']);
select add('default', 'interval second(2)', array['1.005', '1.004', '-1.005', '1:02.999']);
select add('default', 'interval(0)', array['1.5', '-1.5', '0.4 s', '1 day 2:03:04.5']);
select add('default', 'interval day to second(3)', array['1 2:03:04.56789', '1.0005']);
set local cases.part = 'compound';
select add('default', 'inet', array['1.2.3.4', '1.2.3.4/24', '1.2.3.4/32', '1.2.3.4/33', '10.1/16', '10/8', '10.1', '10.1.2/8', '10/16', '256.1.1.1', '1.2.3.4.5', '1.2.3', '1.2.3.4/', '1.2.3.4/x', '1.2.3.4/ 5', '1.2.3.4x', '', ' 1.2.3.4', '01.02.03.04', '1..2.3', '::', '::1', '::1/64', '1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7', '::ffff:1.2.3.4', '::1.2.3.4/96', '1::2::3', 'fe80::1%eth0', '::/129', '::/128', '::/064', '12345::', ':1', '1:', 'abcd:EF01::/32', '::ffff:1.2.3.256', '2001:db8::1/x']);
select add('default', 'cidr', array['1.2.3.4', '1.2.3.0/24', '1.2.3.4/24', '10', '10.1', '10.1.2', '10.1.2.3', '172.16', '192.168', '192.168.1', '224', '224.1', '240', '128.1', '192.168.1.0/25', '0x0a01', '0xc0a8/16', '10/8', '10/4', '::/0', '::1', '2001:db8::/32', '2001:db8::1/32', '1.2.3.4/33', 'x', '', '10.0.0.0/7', '11.0.0.0/7']);
select add('default', 'macaddr', array['08:00:2b:01:02:03', '08-00-2b-01-02-03', '08002b:010203', '08002b-010203', '0800.2b01.0203', '0800-2b01-0203', '08002b010203', '8:0:2b:1:2:3', '08:00:2b:01:02', '08:00:2b:01:02:03:04', '08:00:2b:01:02:0g', '108:00:2b:01:02:03', '', '08:00-2b:01:02:03', ' 08:00:2b:01:02:03 ', '08:00:2b:01:02:03 x', '08002b0102']);
select add('default', 'macaddr8', array['08:00:2b:01:02:03:04:05', '08-00-2b-01-02-03-04-05', '08002b:0102030405', '08002b0102030405', '0800.2b01.0203.0405', '08:00:2b:01:02:03', '08002b010203', '08:00-2b:01:02:03', '', 'x', '08:00:2b:01:02:03:04', '08:00:2b:01:02:03:04:05:06', ' 08:00:2b:01:02:03 ', '08:00:2b:01:02:0', '08:00:2b:01:02:03 :04:05']);
select add('default', 'point', array['(1,2)', '1,2', ' ( 1 , 2 ) ', '(1,2', '1,2)', '(1 2)', '1', '', '(1,2,3)', '(nan,inf)', '(1e400,2)', '(x,2)', '(1,2)x', '((1,2))', '(,)']);
select add('default', 'lseg', array['[(1,2),(3,4)]', '((1,2),(3,4))', '(1,2),(3,4)', '1,2,3,4', '[1,2,3,4]', '[(1,2),(3,4)', '(1,2)', '', '[(1,2),(3,4)]x', '[(1,2),(3,4),(5,6)]', ' [ ( 1 , 2 ) , ( 3 , 4 ) ] ']);
select add('default', 'box', array['(1,2),(3,4)', '((3,4),(1,2))', '1,2,3,4', '(3,2),(1,4)', '[(1,2),(3,4)]', '(1,2)', '(nan,1),(2,3)', '((1,2),(3,4)', '(1,2),(3,4) ', '(1,2,3,4)']);
select add('default', 'line', array['{1,2,3}', '{0,0,1}', '{0,1,0}', ' { 1 , 2 , 3 } ', '{1,2}', '{1,2,3', '[(1,2),(3,4)]', '(1,2),(3,4)', '1,2,3,4', '(1,2),(1,2)', '(1,2),(1,5)', '(1,2),(5,2)', '(0,0),(1,1)', '{1,2,3}x', '']);
select add('default', 'path', array['[(1,2),(3,4)]', '((1,2),(3,4))', '(1,2),(3,4)', '1,2,3,4', '(1,2,3,4)', '[1,2,3,4]', '((1,2))', '[(1,2)]', '(1,2)', '1,2', '[(1,2),(3,4)', '[]', '()', '', '1,2,3', '[(1,2),(3,4)]x', '((1,2),(3,4)]', '(1,2),(3,4),(5,6)', ' ( (1,2) , (3,4) ) ']);
select add('default', 'polygon', array['((1,2),(3,4),(5,6))', '(1,2),(3,4)', '1,2,3,4', '((1,2))', '(1,2)', '[(1,2),(3,4)]', '()', '', '((5,6),(1,2),(3,0))', '((1,2),(3,4)', '(1,2,3,4)']);
select add('default', 'circle', array['<(1,2),3>', '((1,2),3)', '(1,2),3', '1,2,3', '<1,2,3>', '<(1,2),-1>', '<(1,2),nan>', '<(1,2),3', '(1,2,3)', '', '<(1,2),3>x', ' < ( 1 , 2 ) , 3 > ', '((1,2,3)', '<(1,2) 3>']);
select add('default', 'json', array['null', 'true', ' false ', '1', '-1.5e+3', '"a"', '""', '[]', '{}', '[1, 2,3]', '{"a":1, "b": [true, null]}', '{"a":1,"a":2}', '', ' ', 'nul', 'nulll', 'True', '01', '-', '-x', '1.', '.5', '1e', '+1', '1x', '1 2', '[', ']', '[1', '[1,', '[1,]', '[,1]', '[1 2]', '{', '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', '{a:1}', '{"a" 1}', '{"a":1 "b":2}', '{1:2}', '{,}', '"a', '"\', '"\x"', '"\u12"', '"\u00e9"', '"\u0000"', '"\ud83d\ude00"', '"\ud83d"', '"\ude00"', '"\ud83d\ud83d"', '"\ud83dx"', E'"a\tb"', E'"a\nb"', '"é"', 'é', '''a''', '{"a":1}}', '[1]]', '"\n\t\\\/\b\f\r\""', '1_000', 'NaN', '-Infinity', '0x1', '[1,2,"x]', '{"a":{"b":{"c":[]}}}', '--1', '#', '[true false]', '1é', '"\uD83D\u0041"', E'\u00a01']);
select add('default', 'jsonb', array['null', 'true', ' false ', '1', '-1.5e+3', '1.500', '1e10', '1e-3', '"a"', '""', '[]', '{}', '[1, 2,3]', '{"a":1, "b": [true, null]}', '{"a":1,"a":2}', '{"bb":1,"a":2,"ccc":3,"b":4}', '{"b":1,"a":{"z":1,"y":[{}]},"b":null}', '[[],[[]],{},[{}]]', '', 'nul', '[1,]', '{"a"}', '"\u0000"', '"\ud83d\ude00"', '"\ud83d"', '"\ude00"', '"\ud83d\ud83d"', '"\ud83dx"', '"\ud83d\n"', '"\u00e9\u0041"', '1e131072', '0.1e400', '-0', '-0.0', '"\n\t\\\/\b\f\r\""', '{"é":"日本","":1}', '[' || repeat('1,', 70) || '1]', '{"a":[1.5,"x",2.5],"b":{"c":3}}', '[1,"a",2,"bb",3,"ccc",4,[5],6]', (select '{' || string_agg(format('"k%s":%s', i, i), ',') || '}' from generate_series(1, 40) i), '[' || repeat('[', 50) || repeat(']', 50) || ']', '{"a":1,"b":2,"a":[3],"c":4,"a":"x"}']);
select add('default', unnest(array['int4[]', 'text[]', 'box[]', 'numeric(5,2)[]']), array['{}', '{1}', '{1,2,3}', ' { 1 , 2 } ', '{{1,2},{3,4}}', '{{1,2},{3}}', '{{1},2}', '{1,{2}}', '{{}}', '{{},{}}', '{{{1}}}', '{1,NULL,3}', '{null}', '{"NULL"}', '{1,}', '{,1}', '{,}', '{1 2}', '{1', '1}', '1', '', '{1}x', '{1}{2}', '{"1"}', '{"1}', '{1"2"}', '{"1"2}', '{\1}', '{a b }', '{a\ }', '{"a\"b\\c"}', '{""}', '{[2:3]}', '[2:3]={1,2}', '[-1:1]={1,2,3}', '[2]={1,2}', '[1:2][0:1]={{1,2},{3,4}}', '[2:3]={1}', '[3:2]={}', '[1:2]', '[1:2]=', '[1:2]=x', '[:2]={1,2}', '[a:2]={1}', '[1:]={1}', '[1:2={1,2}', '[2147483647:2147483647]={1}', '[2147483646:2147483647]={1,2}', '[99999999999:1]={1}', '{{{{{{1}}}}}}', '{{{{{{{1}}}}}}}', '[1:1][1:1][1:1][1:1][1:1][1:1][1:1]={1}', '{{1,2},{3,4}', '{x,y}', '{(1,2),(3,4);(5,6),(7,8)}', '{1.005,999.99}', '{1000}', '{{1,2},NULL}', '{{NULL,1}}', '{1}}', '{"a",b,"c d"}', '{é}', '{"a" , "b"}', '[0:0]={1}', ' [0:0] = {1}', '[1:0]={}', '{{1},{}}', '{{},{1}}', '{1,2;3}', '{(1,2),(3,4)}']);
select add('default', 'bool[]', array['{t,f,NULL,true}', '{t,x}', (select array_agg(i % 3 = 0)::text from generate_series(1, 20) i)]);
select add('default', 'mood', array['sad', 'ok', 'so so', 'Sad', '', ' sad', repeat('x', 70)]);
select add('default', 'mood[]', array['{sad,ok}', '{"so so",NULL}', '{x}']);
select add('default', 'pair', array['(1,a)', '(1,)', '(,)', '(,"")', '("1","a b")', '(1,"a""b")', '(1,a\"b)', '(1,"a\\b")', ' (1,a) ', '( 1 , a )', '(1)', '(1,a,b)', '(1,a', '1,a)', '', '(1,a)x', '(x,a)', '()', '(1,"a)', '(1,a"b,c"d)', '(1,\', '(1,é)']);
select add('default', 'nested', array['("(1,a)","{1,2}",ok)', '(,,)', '("(1,""a b"")",{},)', '("(1,""a""""b"")",,sad)', '("(x,a)",,)', '(,,bad)']);
select add('default', 'pair[]', array['{"(1,a)","(2,b)"}', '{"(1,\"a b\")",NULL}', '{(1}']);
select add('default', 'int4range', array['[1,5)', '(1,5]', '[1,5]', '(1,5)', '[1,1]', '[1,1)', '(1,2)', '[5,1]', 'empty', ' EMPTY ', 'empty x', '(,5)', '[1,)', '(,)', '[,]', '[1,5', '1,5)', '[1 5)', '[1,5,6)', '[1,5)x', '', '[a,5)', '["1","5")', '[1,2147483647]', '[2147483647,2147483647]', '(2147483647,)', ' [1,5) ', '[ 1 , 5 )', '[1,"5)', '[\1,5)']);
select add('default', 'int8range', array['[1,5]', '(1,9223372036854775807]', '(9223372036854775807,)']);
select add('default', 'numrange', array['[1.5,2.50)', '(1,1]', '[1,1]', '[1.0,1.00]', '[2,1]', '[nan,nan]', '[,infinity]', '(-infinity,infinity)', '[1e10,1e20)', '[1,NULL)']);
select add('default', 'daterange', array['[2024-01-01,2024-02-01]', '(2024-01-01,2024-01-02)', '[-infinity,infinity]', '(-infinity,infinity)', '[infinity,]', '(2024-01-01,)', '[5874897-12-31,5874897-12-31]', '[today,today]', '[2024-13-01,)']);
select add('default', 'tsrange', array['[2024-01-01,2024-02-01]', '["2024-01-01 12:00","2024-01-01 12:00")', '[2024-01-01 12:00,2024-01-01 11:00)']);
select add('default', 'tstzrange', array['[2024-01-01,2024-02-01]', '["2024-01-01 12:00+01","2024-01-01 12:00+00")']);
select add('default', 'floatrange', array['[1,2]', '[nan,1]', '[1,nan]', '[-0,0]', '(0,-0)']);
select add('default', 'timerange', array['[12:00,13:00)', '[24:00,00:00]']);
select add('default', 'int4range[]', array['{"[1,5)",empty}', '{[1,5)}']);
select add('default', 'int4multirange', array['{}', '{[1,5)}', '{[1,5),[7,9)}', '{[7,9),[1,5)}', '{[1,5),[5,9)}', '{[1,5),[3,9)}', '{[1,3],[4,6]}', '{empty}', '{empty,[1,2)}', '{[1,2),empty}', '{(,5),[3,)}', '{[1,10),[2,3)}', ' { [1,2) , [3,4) } ', '{', '', '[1,2)', '{[1,2)', '{[1,2),', '{[1,2),}', '{,}', '{x}', '{[1,2)}x', '{[1,2) [3,4)}', '{[5,1)}', '{"[1,2)"}', '{[1,2),[3,4),[5,6),[7,8),[9,10),[11,12),[13,14),[15,16),[17,18)}', '{[a,b)}', '{(,),(,)}']);
select add('default', 'nummultirange', array['{[1.5,2.5),[2.5,3]}', '{(1,2),(2,3)}', '{[1,2),(2,3)}', '{[1,2],(2,3)}', '{[1.25,7.5],[10,100000.125),(200000,)}']);
select add('default', 'datemultirange', array['{[2024-01-01,2024-02-01],[2024-02-02,2024-03-01]}']);
select add('default', 'regclass', array['-', '0', '1259', '4294967296', '99999']);
select add('default', 'regtype', array['-', '23']);
-- END OF CASES
create temp table outcomes (id int, settings text, oid oid, ty text, typmod int, txt text, outcome text[]);
select set_config('cases.wanted', :'part', true);
do $$
declare c cases;
begin
  for c in select * from cases where part = current_setting('cases.wanted') order by id loop
    perform set_config('datestyle', case c.settings when 'dmy' then 'ISO, DMY' when 'ymd' then 'ISO, YMD' else 'ISO, MDY' end, true);
    perform set_config('timezone', case when c.settings ~ '/' then c.settings else 'UTC' end, true);
    perform set_config('intervalstyle', case c.settings when 'sql_standard' then 'sql_standard' else 'postgres' end, true);
    insert into outcomes values (c.id, c.settings, c.ty::regtype, c.ty, modifier(c.ty), c.txt, outcome(c.ty, c.txt));
  end loop;
end $$;
reset datestyle; reset intervalstyle;
\o
copy (select 'now', (extract(epoch from now()) * 1000000)::int8 - 946684800000000, '') to stdout (delimiter '|');
copy (select 'catalog', concat_ws('|', 'type', oid, typname, typnamespace, typlen, typalign, typtype, typdelim, typrelid, typelem, typoutput::oid, typbasetype)
  from pg_type where oid >= 16384 and typname !~ '^(_?cases|_?outcomes|_?modified)' order by oid) to stdout (delimiter '|');
copy (select 'catalog', concat_ws('|', 'column', attrelid, attnum, atttypid, attlen, attalign, left(attisdropped::text, 1))
  from pg_attribute join pg_class c on c.oid = attrelid where relkind = 'c' and attnum > 0 and c.oid >= 16384 order by attrelid, attnum) to stdout (delimiter '|');
copy (select 'catalog', concat_ws('|', 'label', enumtypid, oid, enumlabel) from pg_enum where oid >= 16384 order by oid) to stdout (delimiter '|');
copy (select 'catalog', concat_ws('|', 'range', rngtypid, rngsubtype, rngmultitypid) from pg_range where rngtypid >= 16384 order by 2) to stdout (delimiter '|');
copy (select settings, oid::oid, ty, typmod, txt, outcome[1], coalesce(outcome[2], ''), coalesce(outcome[3], ''), coalesce(outcome[4], ''), ''
  from outcomes order by id) to stdout (delimiter '|');
rollback;
