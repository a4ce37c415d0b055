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
