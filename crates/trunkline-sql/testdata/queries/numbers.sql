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
-- name: casts to bits
select b'101'::bit(5), b'10110'::bit(3), b'101'::varbit(2), 5::bit(4), (-5)::bit(8), 5::bit(40), (-5)::int8::bit(70), b'101'::int, b'11111111111111111111111111111111'::int, b'101'::int8, 44::bit(10);
-- name: bits that are too long for an integer
select b'111111111111111111111111111111111'::int;
-- name: operators of bits
select b'1011' & b'0110', b'1011' | b'0110', b'1011' # b'0110', ~b'10110', b'10110' << 2, b'10110' >> 2, b'10110' << -1, b'10110' >> 9, b'101' || b'0011', ''::varbit || b'1', ~''::varbit, b'1010101010' << 9, b'1100110011' >> 8;
-- name: bits of different lengths
select b'1011' & b'011';
-- name: parts of bits
select substring(b'110010' from 3), substring(b'110010' from 2 for 3), substring(b'110010' from -1 for 4), substring(b'110010' from 9), overlay(b'110010' placing b'111' from 2), overlay(b'110010' placing b'000' from 2 for 1), position(b'001' in b'110010'), position(b'111' in b'110010'), position(''::varbit in b'1'), position(b'1' in ''::varbit), get_bit(b'110010', 1), get_bit(b'110010', 2), set_bit(b'110010', 2, 1), set_bit(b'110010', 0, 0);
-- name: sizes of bits
select length(b'1100101011'), bit_length(b'1100101011'), octet_length(b'1100101011'), bit_count(b'1100101011'), length(flags), bit_count(bits) from numbers where id <= 5 order by id;
-- name: a substring of bits with a negative length
select substring(b'110010' from 2 for -1);
-- name: a bit beyond the last one
select get_bit(b'110010', 6);
-- name: a bit that is neither 0 nor 1
select set_bit(b'110010', 1, 2);
-- name: aggregates of bits
select bit_and(bits), bit_or(bits), bit_xor(bits), bit_and(bits) filter (where id > 100), count(distinct bits) from numbers;
-- name: aggregates of bits of different lengths
select bit_or(flags) from numbers;
-- name: bits are compared
select id, bits, flags from numbers where bits > b'00000011' order by bits, id;
-- name: series of numerics
select * from generate_series(1, 2.5, 0.5) union all select * from generate_series(3.0, 1) union all select * from generate_series(5, 4.0, -0.25) union all select * from generate_series(1.50, 3);
-- name: a series of numerics with a step of zero
select * from generate_series(1.0, 2, 0);
-- name: a series of numerics without end
select * from generate_series(1.0, 'infinity');
-- name: a series of numerics from NaN
select * from generate_series('nan'::numeric, 1);
-- name: to_number
select to_number('12,454.8-', '99G999D9S'), to_number('-34,338,492', '99G999G999'), to_number('<564646.654564>', '999999.999999PR'), to_number('0.00001-', '9.999999S'), to_number('5.01-', 'FM9.999999S'), to_number('5.01-', 'FM9.999999MI'), to_number('5 4 4 4 4 8 . 7 8', '9 9 9 9 9 9 . 9 9'), to_number('.01', 'FM9.99'), to_number('.0', '99999999.99999999'), to_number('0', '99.99'), to_number('.-01', '99.99S'), to_number('.01-', '99.99S'), to_number(' . 0 1-', ' 9 9 . 9 9 S'), to_number('34,50', '999,99'), to_number('123,000', '999G'), to_number('123456', '999G999'), to_number('$1234.56', 'L9,999.99'), to_number('$1,234.56', 'L99,999.99'), to_number('1234.56', 'L9,999.99'), to_number('42nd', '99th'), to_number('123456', '99999V99'), to_number('12', ''), to_number(null, '9'), to_number('+12', 'SG99'), to_number('-12', 'PL99'), to_number('é12', 'x99');
-- name: to_number of no number
select to_number('abc', '999');
-- name: to_number with an exponent
select to_number('1e3', '9EEEE');
-- name: to_number of more digits than the picture has
select to_number('123.45', '9.99');
-- name: to_number of roman numerals (18)
select to_number('CvIiI', 'rn'), to_number('  XIV  ', '  RN'), to_number('MMXX', 'RN'), to_number('MCMXCIV', 'FMRN');
-- name: to_number of no roman numeral (18)
select to_number('viv', 'RN');
