-- name: every type
select * from numbers order by id;
-- name: integer arithmetic
select 7 / 2, -7 / 2, 7 % -3, -7 % 3, 2 * 3 + 4, -2 ^ 2, 10 - -3, 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 4, -16 >> 2;
-- name: types of arithmetic
select pg_typeof(1::int2 + 1::int2), pg_typeof(1::int2 + 1), pg_typeof(1 + 1::int8), pg_typeof(1 + 1.0), pg_typeof(1.0 + 1::float4), pg_typeof(1::float4 + 1::float4), pg_typeof(2 ^ 2), pg_typeof(2.0 ^ 2);
-- name: types of literals
select pg_typeof(1), pg_typeof(2147483648), pg_typeof(9223372036854775808), pg_typeof(1.0), pg_typeof(1e3), pg_typeof('x'), pg_typeof(null), pg_typeof(true);
-- name: smallint overflow
select small + 1::int2 from numbers where id = 2;
-- name: integer overflow of a sum
select medium + 1 from numbers where id = 2;
-- name: integer overflow of a product
select medium * medium from numbers where id = 9;
-- name: bigint overflow
select large - 1 from numbers where id = 3;
-- name: bigint overflow of a product
select large * large from numbers where id = 9;
-- name: negation of the smallest
select -medium from numbers where id = 3;
-- name: smallest divided by minus one
select medium / -1 from numbers where id = 3;
-- name: remainder by minus one
select small % -1::int2, medium % -1, large % -1 from numbers order by id;
-- name: absolute value of the smallest
select abs(large) from numbers where id = 3;
-- name: division by zero
select id, medium / small from numbers order by id;
-- name: numeric division by zero
select 1.0 / 0;
-- name: float division by zero
select 1 / 0::float8;
-- name: remainder of zero
select 5 % 0;
-- name: numeric scale of results
select 1.0 / 3, 2.00 * 3.000, 1.10 + 2.2, 10 / 4.0, 1e20 / 3, 7.5 % 2, -7.5 % 2, 1.5 ^ 3, 2 ^ 0.5::numeric, 1.000 / 8.0;
-- name: big numerics
select exact * exact, exact + 1, exact / 7, exact - exact from numbers where id in (2, 3, 9) order by id;
-- name: numeric special values
select exact, exact + 1, exact * -1, exact * 0, exact = 'NaN' as is_nan, exact > 1e300 as big from numbers where id in (4, 5, 10) order by id;
-- name: numeric functions
select round(2.5), round(-2.5), round(2.345, 2), round(1234.5, -2), trunc(-2.789, 1), ceil(-0.5), floor(-0.5), sign(-3.2), abs(-1.50), mod(7, 3), div(7.5, 2), sqrt(2.0), power(2.0, 0.5), exp(1.0), ln(2.0), log(100.0), log(2.0, 8.0);
-- name: float functions
select round(2.5::float8), round(3.5::float8), trunc(-2.7::float8), ceil(1.2::float8), sqrt(2::float8), cbrt(8::float8), exp(1::float8), ln(2::float8), power(2::float8, 10), pi(), degrees(pi()), radians(180), sin(1), cos(1), tan(1), atan2(1, 2);
-- name: float arithmetic and text
select single, double, single + double, double * 2, single / 3, double - 1 from numbers where id in (6, 8, 9, 10, 11) order by id;
-- name: float overflow
select double * 10 from numbers where id = 2;
-- name: float underflow
select 1e-300::float8 * 1e-300::float8;
-- name: float comparison
select id, double = 'NaN', double > 'Infinity', double < 0, double is distinct from single from numbers order by id;
-- name: square root of a negative number
select sqrt(-1);
-- name: logarithm of zero
select ln(0.0);
-- name: zero to a negative power
select 0.0 ^ -1;
-- name: casts of floats to integers
select 0.5::float8::int, 1.5::float8::int, 2.5::float8::int, -2.5::float8::int, 2.5::numeric::int, -2.5::numeric::int, 3.7::real::int2;
-- name: float cast out of range
select double::int from numbers where id = 2;
-- name: nan to an integer
select 'NaN'::numeric::int;
-- name: casts between numbers
select 40000::int2;
-- name: numeric with a declared scale
select 12.345::numeric(4,1), 0.05::numeric(3,1), '123.456'::numeric(10,2), 12345::numeric(6,-2);
-- name: numeric out of its precision
select 1000::numeric(6,3);
-- name: number texts
select '  12 '::int, '-0'::float8, '1e3'::numeric, '.5'::numeric, '0x1F'::text, 'inf'::float8, ' NaN '::float4;
-- name: bad integer
select 'twelve'::int;
-- name: integer text out of range
select '3000000000'::int;
-- name: money
select amount, amount * 2, amount / 3, amount + '1.50'::money, amount::numeric, amount / '1.50'::money from numbers where id in (3, 4, 6, 8) order by id;
-- name: bits
select id, bits, ~bits, bits << 2, bits >> 1, bits & b'00001111', bits # b'11111111', flags || bits, length(flags), bits::int, get_bit(bits, 0) from numbers where bits is not null order by id;
-- name: greatest and least
select id, greatest(small, medium), least(single, double), greatest(exact, 0), least(null, 1, 2.5) from numbers order by id;
-- name: gcd, lcm, width_bucket, factorial
select gcd(12, 18), lcm(4, 6), width_bucket(5.35, 0.024, 10.06, 5), factorial(20), to_hex(255), scale(1.500), trim_scale(1.500), min_scale(1.500);
-- name: between
select id from numbers where medium between -7 and 10 order by id;
-- name: between symmetric
select id from numbers where medium between symmetric 10 and -7 order by id;
-- name: not between
select id from numbers where medium not between -7 and 10 order by id;
-- name: to_char of numbers
select to_char(1234.5, '9,999.99'), to_char(-7, '000'), to_char(0.5, 'FM0.00'), to_char(12, 'RN'), to_char(1e10, '9.99EEEE'), to_char(3, 'S9'), to_char(-3, '9PR');
