CREATE TABLE schema_version (version integer PRIMARY KEY);
CREATE TABLE sessions (id text PRIMARY KEY, description text, working_dir text NOT NULL, created_at timestamp);
CREATE TABLE messages (id integer PRIMARY KEY AUTOINCREMENT, message_id text, session_id text NOT NULL, role text NOT NULL, content_json text NOT NULL, created_timestamp integer NOT NULL, metadata_json text);
INSERT INTO sessions VALUES ('20260504_1', 'Kite', '/home/odalys/kite', '2026-05-04 10:00:00');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json) VALUES
 ('z1', '20260504_1', 'user', '[{"type":"text","text":"The kite flies at six knots."}]', 1777888800, '{"userVisible":true}'),
 ('z2', '20260504_1', 'assistant', '[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"I look."},{"type":"toolRequest","id":"c","toolCall":{}}]', 1777888801, '{"userVisible":true}'),
 ('z3', '20260504_1', 'user', '[{"type":"toolResponse","id":"c","toolResult":{}}]', 1777888802, NULL),
 ('z4', '20260504_1', 'user', '[{"type":"text","text":"Summary."}]', 1777888803, '{"userVisible":false}'),
 ('z5', '20260504_1', 'assistant', '[{"type":"text","text":"Six knots, noted."}]', 1777888804, NULL);
