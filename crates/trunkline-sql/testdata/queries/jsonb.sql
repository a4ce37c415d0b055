-- name: json and jsonb as text
select * from documents order by id;
-- name: field and element access
select id, b -> 'a', b ->> 'a', b -> 'b' -> 'c' -> 0, b -> 3, b ->> 1, b -> -1, j -> 'a', j ->> 1 from documents order by id;
-- name: paths
select id, b #> '{b,c,2}', b #>> '{b,c,2,d}', b #> '{0}', j #>> '{items,1,sku}' from documents order by id;
-- name: where a field is
select id, profile ->> 'lang' from customers where profile ->> 'lang' = 'en' and (profile ->> 'visits')::int > 20 order by id;
-- name: containment
select id, b @> '{"a": 1}', b @> '[1, null]', b <@ '{"a": 1, "b": {"c": [1, 2, {"d": null}]}, "x": 0}' from documents order by id;
-- name: keys
select id, b ? 'a', b ?| array['z', 'text'], b ?& array['z', 'y'] from documents order by id;
-- name: types and sizes
select id, jsonb_typeof(b), json_typeof(j), case when jsonb_typeof(b) = 'array' then jsonb_array_length(b) end from documents order by id;
-- name: length of something else
select jsonb_array_length(b) from documents where id = 1;
-- name: concatenation and removal
select '{"a": 1, "b": 2}'::jsonb || '{"b": 3, "c": null}', '[1]'::jsonb || '2', '{"a": 1, "b": 2}'::jsonb - 'a', '["a", "b"]'::jsonb - 0, '{"a": {"b": 1}}'::jsonb #- '{a,b}', '{"a": 1, "b": 2}'::jsonb - array['a', 'b'];
-- name: set and insert
select jsonb_set('{"a": [1, 2]}', '{a,1}', '9'), jsonb_set('{"a": 1}', '{b}', 'true'), jsonb_insert('{"a": [1, 2]}', '{a,0}', '0'), jsonb_strip_nulls('{"a": null, "b": [null]}');
-- name: elements in from
select d.id, e.value, e.ordinality from documents d, jsonb_array_elements(d.b) with ordinality e where jsonb_typeof(d.b) = 'array' order by 1, 3;
-- name: elements as text in the select list
select id, jsonb_array_elements_text(attributes #> '{specs,tags}') as tag from products where id <= 4 order by id, tag;
-- name: pairs
select key, value, pg_typeof(value) from documents, jsonb_each(b) where id = 1 order by key;
-- name: pairs as text
select key, value from json_each_text('{"a": "x", "b": null, "c": {"d": 1}}') order by key;
-- name: keys of an object
select jsonb_object_keys(b) from documents where id = 9;
-- name: building
select jsonb_build_object('id', id, 'name', name, 'n', null), jsonb_build_array(id, budget, opened, true), to_jsonb(name), json_build_object('a', array[1, 2]) from departments order by id;
-- name: row to json
select row_to_json(d), to_jsonb(d) -> 'name' from departments d order by id;
-- name: array to json
select to_json(i), array_to_json(t), to_jsonb(n), to_jsonb(c) from arrays order by id;
-- name: to_json of times and floats
select to_json(timestamp '2024-02-29 12:34:56.5'), to_json(timestamptz '2024-02-29 12:34:56+00'), to_json(date 'infinity'), to_json(1.50), to_json('NaN'::float8), to_json('a"b\c'::text);
-- name: record from json
select * from jsonb_to_record('{"a": 1, "b": [2], "c": "x"}') as r(a int, b int[], c text, d bool);
-- name: recordset
select * from jsonb_to_recordset('[{"a": 1, "b": "x"}, {"a": "2"}]') as r(a int, b text) order by a;
-- name: populate a composite
select jsonb_populate_record(null::size, '{"width": 5, "unit": "mm"}');
-- name: numbers keep their scale
select '1.500'::jsonb, '1e2'::jsonb, '-0'::jsonb, '1.0'::jsonb = '1'::jsonb, '12345678901234567890'::jsonb, '1E-10'::json;
-- name: casts of scalars
select b::int from documents where id = 5;
-- name: casts to other scalars
select '1.6'::jsonb::int, 'true'::jsonb::bool, '2.50'::jsonb::numeric, '3'::jsonb::float8;
-- name: cast of an object
select b::int from documents where id = 1;
-- name: bad json
select '{"a": }'::jsonb;
-- name: bad escape
select '"\u0000"'::jsonb;
-- name: equality and order
select a.id, b.id from documents a join documents b on a.b = b.b where a.id <= b.id order by 1, 2;
-- name: group by a field
select attributes -> 'color' as color, count(*), sum((attributes ->> 'parts')::int) from products group by 1 order by 1;
-- name: path queries
select id, jsonb_path_query_array(b, '$.items[*] ? (@.qty > 2).sku'), jsonb_path_exists(b, '$.b.c[*] ? (@ == 2)'), b @? '$.a', b @@ '$.a == 1' from documents order by id;
-- name: subscripts
select id, b['b']['c'][1], b['items'][0]['sku'], b[0] from documents order by id;
-- name: pretty
select jsonb_pretty(b) from documents where id in (1, 8) order by id;
-- name: json fields and elements
select j -> 'a', j ->> 'a', j -> 'b', j ->> 'b', j -> 'x', j -> 'c' -> 0, j -> 'c' ->> -1, j -> 'c' -> 5, j -> 'd', j ->> 'd', j #> '{c,1}', j #>> '{c,1}', j #> '{}', j #>> '{c,-2,e}', j -> 0 from (values ('{"a": "x\ny", "b": [1,  2 ],"a" : "z\u00e9", "c": [{"e": 1.50}, null], "d": null}'::json), ('[1]'), ('"s"'), (' 12 ')) v(j);
-- name: json sizes and types
select json_typeof(j), json_typeof(j -> 'a') from (values ('{"a": 1}'::json), ('[]'), ('"s"'), ('1'), ('true'), ('null'), (null)) v(j);
-- name: json array lengths
select json_array_length('[1, [2, 3], {}]'), json_array_length('[ ]'), json_array_length(null);
-- name: json array length of an object
select json_array_length('{"a": 1}');
-- name: json array length of a scalar
select json_array_length('1');
-- name: json elements
select e, t from json_array_elements('[1, "a\tb", null, [2, 3], {"x" : 1}]') with ordinality a(e, n) join json_array_elements_text('[1, "a\tb", null, [2, 3], {"x" : 1}]') with ordinality b(t, n) using (n) order by n;
-- name: json elements of an object
select json_array_elements('{}');
-- name: json elements of a scalar
select json_array_elements_text('1');
-- name: json pairs
select * from json_each('{"a": 1, "b" : {"c":  [ ]}, "a": null, "": "x\\y"}');
-- name: json pairs as text
select * from json_each_text('{"a": 1, "b" : {"c":  [ ]}, "a": null, "": "x\\y"}');
-- name: json pairs of an array
select * from json_each('[]');
-- name: json pairs of a scalar
select * from json_each_text('"x"');
-- name: json keys
select json_object_keys('{"b": 1, "a": {"z": 1}, "b": 2}');
-- name: json keys of an array
select json_object_keys('[1]');
-- name: json keys of a scalar
select json_object_keys('null');
-- name: json without nulls
select json_strip_nulls(' {"a": null, "b" : [1, null, {"c": null}], "d": "x\u0041"} '), json_strip_nulls('[null, {"a": null}]'), json_strip_nulls('null'), jsonb_strip_nulls('{"a": null, "b": [1, null, {"c": null}], "d": {}}'), jsonb_strip_nulls('null'), jsonb_strip_nulls('[[null], {"a": {"b": null}}]');
-- name: json with a null character
select '{"a": "\u0000", "b": 1}'::json -> 'b';
-- name: json with half a character
select '{"a": "\ud83d", "b": 1}'::json ->> 'b';
-- name: json with a null character that is not read
select json_typeof('{"a": "\u0000"}'), json_array_length('["\u0000"]'), json_array_elements('["\u0000"]');
-- name: jsonb in lines
select jsonb_pretty('{"a": [1, {}, []], "b": {"c": "x\"y", "d": null}, "e": true}'), jsonb_pretty('[]'), jsonb_pretty('"x"'), jsonb_pretty('1.50'), jsonb_pretty('{}');
-- name: jsonb set
select jsonb_set('{"a": [1, {"b": 2}], "c": {}}', p, '"new"'), jsonb_set('{"a": [1, {"b": 2}], "c": {}}', p, '{"x": 1}', false) from (values ('{a}'::text[]), ('{a,0}'), ('{a,1,b}'), ('{a,1,z}'), ('{a,-1}'), ('{a,-9}'), ('{a,9}'), ('{c,d}'), ('{c,d,e}'), ('{z}'), ('{a,0,b}'), ('{}')) v(p);
-- name: jsonb set in an empty value
select jsonb_set('{}', '{a}', '1'), jsonb_set('[]', '{0}', '1'), jsonb_set('[]', '{-5}', '1'), jsonb_set('{}', '{a}', '1', false), jsonb_set('[]', '{x}', '1', false), jsonb_set(null, '{a}', '1'), jsonb_set('{}', null, '1');
-- name: jsonb set of no number
select jsonb_set('[1]', '{x}', '1');
-- name: jsonb set of a null step
select jsonb_set('{"a": 1}', '{a,null}', '1');
-- name: jsonb set in a scalar
select jsonb_set('1', '{a}', '1');
-- name: jsonb insert
select jsonb_insert('{"a": [1, 2], "b": {}}', p, '"new"'), jsonb_insert('{"a": [1, 2], "b": {}}', p, '[9]', true) from (values ('{a,0}'::text[]), ('{a,1}'), ('{a,-1}'), ('{a,-2}'), ('{a,-9}'), ('{a,9}'), ('{b,x}'), ('{z}'), ('{b,x,y}')) v(p);
-- name: jsonb insert of a key that exists
select jsonb_insert('{"a": 1}', '{a}', '2');
-- name: jsonb set lax
select jsonb_set_lax('{"a": 1, "b": 2}', '{b}', null), jsonb_set_lax('{"a": 1, "b": 2}', '{b}', null, true, 'delete_key'), jsonb_set_lax('{"a": 1, "b": 2}', '{b}', null, true, 'return_target'), jsonb_set_lax('{"a": 1, "b": 2}', '{b}', '3', false, 'delete_key'), jsonb_set_lax(null, '{b}', null);
-- name: jsonb set lax of null
select jsonb_set_lax('{"a": 1}', '{a}', null, true, 'raise_exception');
-- name: jsonb set lax of another treatment
select jsonb_set_lax('{"a": 1}', '{a}', null, true, 'other');
-- name: jsonb delete path
select '{"a": [1, {"b": 2}], "c": {}}'::jsonb #- p from (values ('{a}'::text[]), ('{a,0}'), ('{a,-1,b}'), ('{a,9}'), ('{a,-9}'), ('{c,x}'), ('{z,y}'), ('{}')) v(p);
-- name: jsonb delete path of no number
select '[1]'::jsonb #- '{x}';
-- name: jsonb delete path in a scalar
select '1'::jsonb #- '{x}';
-- name: a column definition list is required
select * from json_to_record('{"a":1}');
-- name: a column definition list for a scalar
select * from generate_series(1, 2) as t(a int);
-- name: a column definition list beside OUT parameters
select * from json_each('{"a":1}') as t(a int);
-- name: a column definition list for a composite type
select * from jsonb_populate_record(null::size, '{"width":1}') as t(a int);
-- name: a column definition list with ordinality
select * from jsonb_to_record('{"a":1}') with ordinality as t(a int);
-- name: a column definition list for several functions
select * from rows from (json_to_record('{"a":1}'), json_to_record('{"a":1}')) as t(a int);
-- name: column definition lists in rows from
select * from rows from (json_to_record('{"a":1}') as (a int), json_to_recordset('[{"a":1},{"a":2}]') as (b int, a int)) with ordinality as t(x, y);
-- name: a column twice in a column definition list
select * from jsonb_to_record('{"a":1}') as t(a int, a int);
-- name: a pseudo-type in a column definition list
select * from jsonb_to_record('{"a":1}') as t(a int, b anyelement);
-- name: a set in a column definition list
select * from jsonb_to_record('{"a":1}') as t(a setof int);
-- name: a record without a type
select json_to_record('{"a":1}');
-- name: a record from a json null
select * from jsonb_to_record('null') as t(a int);
-- name: a record from an array
select * from json_to_record('[1]') as t(a int);
-- name: records from nothing
select * from jsonb_to_record(null) as t(a int), (select count(*) from jsonb_to_recordset(null) as t(a int)) s;
-- name: a recordset from an object
select * from jsonb_to_recordset('{"a":1}') as t(a int);
-- name: a recordset from numbers
select * from jsonb_to_recordset('[1]') as t(a int);
-- name: a json recordset from an object
select * from json_to_recordset('{"a":1}') as t(a int);
-- name: a json recordset from a scalar
select * from json_to_recordset('1') as t(a int);
-- name: arrays of different sizes in json
select * from json_to_record('{"a": [[1,2],[3]]}') as t(a int[]);
-- name: a number among arrays in json
select * from jsonb_to_record('{"a": [[1,2],3]}') as t(a int[]);
-- name: a number instead of an array in json
select * from jsonb_to_record('{"a": 3}') as t(a int[]);
-- name: columns of a record from jsonb
select * from jsonb_to_record('{"a": "{1,2}", "b":"x", "c":{"x":1}, "d":[1,{"y":2}], "e":"str", "f":1.50, "g":true, "h":"abc", "i":[[1,2],[3,null]], "j":[]}') as t(a int[], b json, c text, d json[], e jsonb, f numeric(5,1), g text, h varchar(5), i int[], j int[], k date);
-- name: columns of a record from json
select * from json_to_record('{"a": "{1,2}", "b":"x\u0041", "c":{"x" :1}, "d":[1,{"y":2}], "e":"str", "f":1.50, "g":true, "h":"abc", "i":[[1,2],[3,null]], "a":[7]}') as t(a int[], b json, c text, d json[], e jsonb, f numeric(5,1), g text, h char(5), i text[]);
-- name: a text that is too long in json
select * from json_to_record('{"h":"abcdef"}') as t(h varchar(5));
-- name: rows in a record from json
select * from json_to_record('{"h":{"width":1,"unit":"x"}, "i":"(1,2,z)", "j":5}') as t(h size, i size, k int);
-- name: a number instead of a row in json
select * from json_to_record('{"h":5}') as t(h size);
-- name: names of columns are case sensitive in json
select * from jsonb_to_record('{"H":5,"h":6}') as t(h int, "H" int);
-- name: a row is populated
select jsonb_populate_record(row(1,2,'x')::size, '{"width":null,"unit":"q"}'), json_populate_record(row(1,2,'x')::size, '{"height":"7"}'), jsonb_populate_record(row(1,2,'x')::size, null), jsonb_populate_record(null::size, null), jsonb_populate_record(row(1,2), '{"f1":7}');
-- name: a row in from is populated
select * from jsonb_populate_record(null::size, null) a, json_populate_record(row(5,6,'z')::size, '{"unit": 1}') b;
-- name: a record that nothing describes
select jsonb_populate_record(null::record, '{"f1":7}');
-- name: a record that a list describes
select * from jsonb_populate_record(null::record, '{"f1":7}') as t(f1 int), jsonb_populate_record(row(1,2), '{"f1":7}') as u(a int, b int);
-- name: a record with other columns
select * from jsonb_populate_record(row(1,2), '{"f1":7}') as t(f1 int);
-- name: a record with other types
select * from jsonb_populate_record(row(1,2), '{"f1":7}') as t(f1 int, f2 text);
-- name: rows are populated
select * from jsonb_populate_recordset(null::size, '[{"width":1},{"height":2}]') a, json_populate_recordset(row(1,2,'q')::size, '[{"width":5},{"height":6}]') with ordinality b order by a.width, b.ordinality;
-- name: rows as values are populated
select jsonb_populate_recordset(null::size, '[{"width":1},{"height":2}]'), json_populate_recordset(row(1,2), '[{"f1":9},{}]');
-- name: no row to populate
select jsonb_populate_record(1, '{"f1":7}');
-- name: a record of each row
select d.id, r.a, r.x from documents d, jsonb_to_record(d.b) as r(a int, x text) where jsonb_typeof(d.b) = 'object' order by d.id;
-- name: subscripts of other kinds
select ('{"a":[1,2]}'::jsonb)['a'][-1], ('{"a":[1,2]}'::jsonb)['a'][1::int2], ('{"a":[1,2]}'::jsonb)[null], ('[1,[2]]'::jsonb)['1'][0], ('{"1":5}'::jsonb)[1], ('7'::jsonb)[0], ('{"a":{"b":"c"}}'::jsonb)['a']['b'];
-- name: a slice of jsonb
select ('{}'::jsonb)['a':'b'];
-- name: a subscript of another type
select ('{}'::jsonb)[1.5];
-- name: paths as text
select p from (values (jsonpath '$.a[*] ? (@.b > 1 && !(@.c == "x")).d'), ('$x.y'), ('$"a b"'), ('$.**{2 to last}.a'), ('strict $[0 to last,3].size()'), ('(1).type()'), ('-(1+2)*3'), ('$.a starts with $b'), ('"\u0041\x42\n"'), ('($.a == 1) is unknown'), ('exists($.a)'), ('!exists($.a)'), ('($ < 1).type()'), ('$.a /* c */ . b'), ('$.keyvalue().key'), ('$.a like_regex "^b" flag "im"'), ('-1 + +2'), ('$.a.*.b[*].**'), ('1 < 2 || 3 >= 4 && 5 <> 6'), ('$.a ? (@ < 1) ? (@.size() == 1)'), ('null'), ('true'), ('1.50'), ('$.**{3}')) v(p);
-- name: a path that ends early
select jsonpath '$.a.';
-- name: an empty path
select jsonpath '';
-- name: the current item outside of a filter
select jsonpath '@.a';
-- name: the last subscript outside of subscripts
select jsonpath 'last';
-- name: a filter that is no predicate
select jsonpath '$ ? (@.a)';
-- name: a chain of comparisons in a path
select jsonpath '$.a == 1 == 2';
-- name: an unknown flag in a path
select jsonpath '$.a like_regex "a" flag "z"';
-- name: junk behind a number in a path
select jsonpath '$[1a]';
-- name: values of paths
select p, jsonb_path_query_array('{"a": [1, 2, {"b": [3, "x", null]}], "c": {"d": 4.50, "e": true}, "f": "abc"}', p) from (values (jsonpath '$'), ('$.a'), ('$.a[*]'), ('$.a[0]'), ('$.a[1 to last]'), ('$.a[last]'), ('$.a[last - 1, 0]'), ('$.a.b'), ('$.*'), ('$.c.*'), ('$.**.b'), ('$.**{2}'), ('$.**{last}'), ('$.**{0 to 1}'), ('$.a[*] ? (@ > 1)'), ('$.a[*] ? (@.type() == "object").b[*]'), ('$.x'), ('$.a.size()'), ('$.a[*].type()'), ('$.f.type()'), ('$.c.d * 2 + 1'), ('-$.c.d'), ('$.c.d % 2'), ('10 / 4'), ('$.c.d.floor()'), ('$.c.d.ceiling()'), ('(-$.c.d).abs()'), ('"1.5".double()'), ('$.f starts with "ab"'), ('$.f like_regex "B" flag "i"'), ('$.f like_regex "^b"'), ('$.a[*] == 1'), ('$.a[*] > 5'), ('$.c.e == true'), ('$.a[2].b[2] == null'), ('exists($.c.d)'), ('$.c.d == "x"'), ('($.c.d == "x") is unknown'), ('$.c.keyvalue().key'), ('$ ? (@.c.d > 4).f'), ('$.a[*] ? (@ == 1 || @ == 2)'), ('$.a[0.9]'), ('$.a[7]'), ('"x"'), ('1'), ('$.a ? (@ == 1)'), ('$.a ? (@.b[0] == 3)')) v(p);
-- name: ids of keyvalue
select jsonb_path_query('{"a": {"b": 1, "cc": {"d": 2}}}', '$.a.keyvalue()'), jsonb_path_query('{"a": {"b": 1, "cc": {"d": 2}}}', '$.** ? (@.type() == "object").keyvalue().id');
-- name: strict paths
select jsonb_path_query_array('{"a": [{"b": 1}, {"b": 2}]}', 'strict $.a[*].b'), jsonb_path_exists('{"a": 1}', 'strict $.a'), jsonb_path_query_array('{"a": [1]}', 'strict $.x', silent => true), jsonb_path_query_array('[1, 2]', 'strict $ ? (@[*] > 1)'), jsonb_path_match('{"a": [1]}', 'strict exists($.x)'), jsonb_path_query_array('{"a": 1}', 'strict $.**.a');
-- name: a member that a strict path lacks
select jsonb_path_query('{"a": 1}', 'strict $.b');
-- name: a member of an array in a strict path
select jsonb_path_query('[{"a": 1}]', 'strict $.a');
-- name: a subscript that a strict path lacks
select jsonb_path_query('[1]', 'strict $[3]');
-- name: elements of a number in a strict path
select jsonb_path_query('1', 'strict $[*]');
-- name: an operand that is no number in a path
select jsonb_path_query('{"a": "x"}', '$.a + 1');
-- name: a sign of a text in a path
select jsonb_path_query('{"a": "x"}', '-$.a');
-- name: a division by zero in a path
select jsonb_path_query('1', '$ / 0');
-- name: errors of paths that are silent
select '{"a": 1}'::jsonb @? 'strict $.b', '{"a": 1}'::jsonb @@ 'strict $.b == 1', '{"a": 1}'::jsonb @@ '$.a', jsonb_path_exists('1', '$ / 0', silent => true), jsonb_path_query_first('1', '$ / 0', '{}', true), '[1, 2]'::jsonb @? '$[*] ? (@ > 1)', '[1, 2]'::jsonb @@ '$[*] > 1', jsonb_path_match('[1]', '$[0] > 1');
-- name: a match that is not one boolean
select jsonb_path_match('[1, 2]', '$[*]');
-- name: variables of paths
select jsonb_path_query_array('[1, 5, 10]', '$[*] ? (@ >= $low && @ <= $high)', '{"low": 2, "high": 7}'), jsonb_path_query('{"a": 1}', '$x.y', '{"x": {"y": "z"}}'), jsonb_path_exists('"abc"', '$ starts with $s', '{"s": "ab"}');
-- name: a variable that doesn't exist
select jsonb_path_query('1', '$x');
-- name: variables that are no object
select jsonb_path_query('1', '$', '[1]');
-- name: methods of paths (17)
select jsonb_path_query_array('[1, "2", true, "t", "3.7", 4.4]', '$[*].string()'), jsonb_path_query_array('[1, "2", 4.6]', '$[*].bigint()'), jsonb_path_query_array('[1, "2"]', '$[*].integer()'), jsonb_path_query_array('["t", 1, 0, false, "no"]', '$[*].boolean()'), jsonb_path_query_array('["1.50", 2]', '$[*].number()'), jsonb_path_query_array('["1.555", 2]', '$[*].decimal(5, 2)');
-- name: a method of a value of another type
select jsonb_path_query('"x"', '$.abs()');
-- name: a number that is no number
select jsonb_path_query('"x"', '$.double()');
-- name: paths of columns
select id, jsonb_path_query_first(b, '$.a'), jsonb_path_exists(b, '$.b'), b @? '$[*] ? (@ == 1)' from documents order by id;
-- name: rows of paths
select d.id, v from documents d, jsonb_path_query(d.b, '$.** ? (@.type() == "number")') v order by d.id, v;
-- name: null arguments of paths
select jsonb_path_query_array(null, '$'), jsonb_path_query_array('1', null), jsonb_path_query_array('1', '$', null);
-- name: a long chain of operators in a path
select length((('1' || repeat(' + 1', 250))::jsonpath)::text), jsonb_path_query('1', ('1' || repeat(' + 1', 250))::jsonpath), jsonb_path_exists('1', ('$ ? (@ == 2' || repeat(' || @ == 1', 250) || ')')::jsonpath);
-- name: a chain of too many operators in a path
select ('1' || repeat(' + 1', 1000000))::jsonpath;
-- name: a chain of too many conditions in a path
select ('$ ? (@ == 1' || repeat(' && @ == 1', 100000) || ')')::jsonpath;
-- name: paths that are printed with another meaning
select jsonb_path_query_array('1.5', '(2 / 4)[0] - 2'), jsonb_path_query_array('1.5', '($ + 2).type()'), '($ + 2).type()'::jsonpath, jsonb_path_query_array('[1, 2]', '-(-$[*]).abs()'), jsonb_path_query_array('1.5', '$ ? (true < (1 - 2).type())');
