CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, directory text NOT NULL, title text NOT NULL, revert text, time_created integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, data text NOT NULL);
INSERT INTO session VALUES
 ('ses_a', 'p', NULL, '/home/odalys/kite', 'Kite', '{"messageID":"msg_a5"}', 1777888800000),
 ('ses_b', 'p', NULL, '/home/odalys/kite', 'Kite (fork #1)', NULL, 1777892400000),
 ('ses_c', 'p', 'ses_a', '/home/odalys/kite', 'Count', NULL, 1777888850000);
INSERT INTO message VALUES
 ('msg_a1', 'ses_a', 1777888800100, '{"role":"user","time":{"created":1777888800100},"agent":"build"}'),
 ('msg_a2', 'ses_a', 1777888801000, '{"role":"assistant","time":{"created":1777888801000},"modelID":"m"}'),
 ('msg_a3', 'ses_a', 1777888802000, '{"role":"user","time":{"created":1777888802000}}'),
 ('msg_a4', 'ses_a', 1777888803000, '{"role":"assistant","time":{"created":1777888803000},"summary":true}'),
 ('msg_a5', 'ses_a', 1777888900000, '{"role":"user","time":{"created":1777888900000}}'),
 ('msg_a6', 'ses_a', 1777888901000, '{"role":"assistant","time":{"created":1777888901000},"modelID":"m"}'),
 ('msg_b1', 'ses_b', 1777888800100, '{"role":"user","time":{"created":1777888800100},"agent":"build"}'),
 ('msg_b2', 'ses_b', 1777888801000, '{"role":"assistant","time":{"created":1777888801000},"modelID":"m"}'),
 ('msg_b3', 'ses_b', 1777892401000, '{"role":"user","time":{"created":1777892401000}}'),
 ('msg_b4', 'ses_b', 1777892402000, '{"role":"assistant","time":{"created":1777892402000},"modelID":"m"}'),
 ('msg_c1', 'ses_c', 1777888851000, '{"role":"user","time":{"created":1777888851000}}');
INSERT INTO part VALUES
 ('prt_01', 'msg_a1', 'ses_a', '{"type":"text","text":"Old words.","synthetic":true}'),
 ('prt_02', 'msg_a1', 'ses_a', '{"type":"text","text":"\"The kite flies at six knots.\""}'),
 ('prt_03', 'msg_a2', 'ses_a', '{"type":"step-start"}'),
 ('prt_04', 'msg_a2', 'ses_a', '{"type":"reasoning","text":"Hm."}'),
 ('prt_05', 'msg_a2', 'ses_a', '{"type":"text","text":"Six knots, noted."}'),
 ('prt_06', 'msg_a2', 'ses_a', '{"type":"tool","tool":"bash","state":{"status":"completed","output":"gusts"}}'),
 ('prt_07', 'msg_a3', 'ses_a', '{"type":"compaction","auto":true}'),
 ('prt_08', 'msg_a4', 'ses_a', '{"type":"text","text":"Summary: six knots."}'),
 ('prt_09', 'msg_a5', 'ses_a', '{"type":"text","text":"Take blue silk."}'),
 ('prt_10', 'msg_a6', 'ses_a', '{"type":"text","text":"Blue."}'),
 ('prt_11', 'msg_b1', 'ses_b', '{"type":"text","text":"\"The kite flies at six knots.\""}'),
 ('prt_12', 'msg_b2', 'ses_b', '{"type":"text","text":"Six knots, noted."}'),
 ('prt_13', 'msg_b3', 'ses_b', '{"type":"text","text":"Take red silk."}'),
 ('prt_14', 'msg_b4', 'ses_b', '{"type":"text","text":"Red silk it is."}'),
 ('prt_15', 'msg_c1', 'ses_c', '{"type":"text","text":"Count the knots."}');
