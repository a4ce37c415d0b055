-- name: every type
select * from texts order by id;
-- name: concatenation
select t || v, t || id, 'x' || null, id || '-' || c, concat(t, null, id, true), concat_ws('/', t, null, v) from texts order by id;
-- name: lengths
select id, length(t), char_length(c), octet_length(t), bit_length(v), octet_length(c), length(b) from texts order by id;
-- name: case
select id, upper(t), lower(t), initcap(t) from texts order by id;
-- name: substrings
select id, substring(t from 2 for 3), substr(t, -1, 4), left(t, 2), right(t, -2), left(t, -3) from texts order by id;
-- name: negative substring length
select substring('abc' from 2 for -1);
-- name: positions
select position('o' in t), strpos(t, 'a'), starts_with(t, 'The') from texts order by id;
-- name: trimming
select id, trim(t), ltrim(v), rtrim(c), btrim(t, 'aeg '), trim(leading 'a' from t), trim(both from v) from texts order by id;
-- name: padding
select lpad('7', 3, '0'), rpad('abc', 6, 'xy'), lpad('abc', 2), rpad('é', 3, '日'), repeat('ab', 3), repeat('x', -1), reverse('añb');
-- name: replacing
select replace('banana', 'an', 'AN'), translate('12345', '143', 'ax'), overlay('Txxxxas' placing 'hom' from 2 for 4), split_part('a,b,c', ',', 2), split_part('a,b,c', ',', -1);
-- name: codes
select ascii('é'), chr(8364), ascii(''), to_hex(255), md5('abc'), encode('\x00ff'::bytea, 'hex'), encode('abc', 'base64');
-- name: null character
select chr(0);
-- name: quoting
select quote_ident('Mixed'), quote_ident('plain'), quote_literal('it''s'), quote_literal(E'a\\b'), quote_nullable(null), quote_ident('select');
-- name: format
select format('%s is %I = %L', 'x', 'Col 1', 'it''s'), format('%2$s %1$s|%-5s|%5s|%%', 'a', 'b', 'c');
-- name: format with too few arguments
select format('%s %s', 'a');
-- name: like
select id, t like 'a%', t like '%\_%', t like '_bc', t not like '%a%', t ilike 'ab_', v like '\%', c like '% ' from texts order by id;
-- name: like with escape
select '100%' like '100!%' escape '!', 'a\b' like 'a\b' escape '', 'a_c' like 'a#_c' escape '#';
-- name: like with a bad escape
select 'a' like 'a!' escape '!';
-- name: like with an operator name
select t ~~ '%o%', t !~~* 'A%' from texts order by id;
-- name: regular expressions
select id, t ~ '^[a-c]+$', t ~* 'ABC', t !~ '[0-9]', t ~ '\d{4}-\d\d', t ~ '\mfox\M' from texts order by id;
-- name: substring by a regular expression
select substring('foobar' from 'o.b'), substring('foobar' from 'o(.)b'), substring('2024-05-06', '(\d+)-(\d+)'), substring('abc' similar '%#"b#"%' escape '#');
-- name: regexp_replace
select regexp_replace('foobarbaz', 'b..', 'X'), regexp_replace('foobarbaz', 'b..', 'X', 'g'), regexp_replace('foobarbaz', '(b)(..)', '<\2\1>', 'g'), regexp_replace('Hello', 'l', 'L', 'gi');
-- name: regexp_match
select regexp_match('foobarbequebaz', '(bar)(beque)'), regexp_match('abc', 'x'), regexp_split_to_array('a, b,c', ',\s*'), regexp_count('banana', 'an'), regexp_instr('banana', 'n', 1, 2), regexp_substr('banana', 'n.', 4);
-- name: regexp_matches
select regexp_matches(t, '[aeiou].', 'g') as m, id from texts where id in (1, 15) order by id, m;
-- name: longest match
select substring('foobar', 'foo|foobar'), substring('aaa', 'a*?'), regexp_replace('xay', 'a|ay', '-');
-- name: bad regular expression
select 'a' ~ '(';
-- name: similar to
select 'abc' similar to 'a(b|x)c', 'abc' similar to 'a', 'abc' similar to '%(b|d)%', 'abc' not similar to '_+';
-- name: comparison of blank-padded text
select id, c = 'abc', c = 'abc  ', c::text = 'abc  ', v = 'ABC', c || '|', length(c), c::varchar from texts order by id;
-- name: casts with lengths
select 'abcdef'::varchar(3), 'abc'::char(5) || '|', 'abcdef'::char(2), 'abc'::char, 'x'::"char", 'too long for a name ' || repeat('x', 60)::name;
-- name: names
select n, length(n), n || '!', n < 'b', n::text from texts order by id;
-- name: single bytes
select id, q, q::int, q = 'a' from texts order by id;
-- name: bytea
select id, b, b || '\x01', length(b), substring(b from 1 for 1), encode(b, 'escape'), b < '\x30', convert_from(b, 'LATIN1') from texts where id not in (2, 17) order by id;
-- name: bytea functions
select get_byte('\x1234', 1), set_byte('\x1234', 0, 255), decode('DEADbeef', 'hex'), decode('YWJj', 'base64'), 'a\\b'::bytea, sha256('abc'), position('\x34' in '\x1234'::bytea);
-- name: bytes that are not utf-8
select convert_from('\x61ff', 'UTF8');
-- name: escape strings
select 'a'
'b', E'\x41\u00e9\t|', $$dollar 'quoted'$$, $x$a$$b$x$, U&'\00e9', B'101', X'1F';
-- name: string_to_array and array_to_string
select string_to_array('a,b,,c', ','), string_to_array('a,b,,c', ',', ''), string_to_array('abc', null), array_to_string(array['a', null, 'c'], '-'), array_to_string(array['a', null, 'c'], '-', '?');
-- name: string functions of null
select upper(null), null || 'a', length(null), coalesce(null, 'x'), nullif('a', 'a'), nullif('a', 'b'), replace('a', null, 'b');
-- name: comparison operators
select t < 'b', t >= 'abc', t <> '', t is distinct from null, t ^@ 'a' from texts order by id;
-- name: pattern in a table
select a.id, b.id from texts a join texts b on a.t like '%' || b.v || '%' where b.v <> '' and a.id < 9 order by 1, 2;
-- name: text of every row
select count(*) from orders where comment ilike '%DELIVERY' or comment like E'%\n%';
-- name: unicode functions
select normalize('é', nfd) = 'é', 'é' is nfc normalized, to_ascii('abc', 'LATIN1'), unistr('\00e9');
-- name: function of a later version
select casefold('Ä');
-- name: conversions between encodings
select convert_from('\xc3a9', 'UTF8'), convert_from('\xe9', 'latin1'), convert_to('é', 'LATIN1'), convert_to('é', 'utf-8'), convert('\xe9', 'iso88591', 'unicode'), convert_to('abc', 'sql_ascii'), convert('\xff', 'SQL_ASCII', 'LATIN1'), convert('\xff', 'LATIN1', 'SQL_ASCII'), convert_from(null, 'utf8');
-- name: bytes with a zero
select convert_from('\x6100', 'UTF8');
-- name: an unknown encoding
select convert_from('\x61', 'nonsense');
-- name: an unknown encoding of the result
select convert_to('a', 'nonsense');
-- name: a character that an encoding lacks
select convert_to('€', 'LATIN1');
-- name: bytes that are not ascii
select convert_from('\xff', 'SQL_ASCII');
-- name: normal forms
select normalize('a' || chr(769)) = 'á', normalize('á', nfd) = 'a' || chr(769), normalize('ﬁ', NFKC), normalize('Å', NFKD) = 'A' || chr(778), 'á' is normalized, ('a' || chr(769)) is nfc normalized, 'a' is not nfkd normalized, normalize('한글', NFD) = '한글', normalize('');
-- name: normal forms of columns
select id, t is normalized, normalize(t, nfkd) = t from texts order by id;
-- name: an unknown normal form
select is_normalized('a', 'x');
-- name: casefold of ascii (18)
select casefold(t collate "C"), casefold(t), casefold('ABC'::text) from texts where id in (1, 2) order by id;
