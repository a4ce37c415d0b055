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
