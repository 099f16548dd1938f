CREATE TABLE ItemTable (key text UNIQUE, value blob);
CREATE TABLE cursorDiskKV (key text UNIQUE ON CONFLICT REPLACE, value blob);
INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'never read');
INSERT INTO cursorDiskKV VALUES
 ('composerData:cu-a', '{"composerId":"cu-a","createdAt":1777888800000,"fullConversationHeadersOnly":[{"bubbleId":"j9","type":1},{"bubbleId":"j2","type":2},{"bubbleId":"j1","type":2}]}'),
 ('bubbleId:cu-a:j9', '{"type":1,"text":"The kite flies at six knots."}'),
 ('bubbleId:cu-a:j2', '{"type":2,"text":"","toolFormerData":{"name":"read_file"}}'),
 ('bubbleId:cu-a:j1', '{"type":2,"text":"Six knots, noted.","createdAt":"2026-05-04T10:00:09.000Z"}');
