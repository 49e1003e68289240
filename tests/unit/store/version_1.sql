-- A store as version 1 made it, with a run in each of four states. It is never changed: stores like it are in use.
BEGIN TRANSACTION;
CREATE TABLE event(
 id integer primary key autoincrement, run bigint not null, n bigint not null, at double precision not null, kind text not null,
 name text not null default '', outcome text not null default '', error text, who text not null default '',
 why text not null default '', worker bigint);
INSERT INTO "event" VALUES(1,3,1,1800000000.0,'suspended','','error','{"type":"ValueError","message":"no"}','','undo failed',NULL);
CREATE TABLE group_state(key text primary key, state blob not null, touched double precision not null);
INSERT INTO "group_state" VALUES('order-1',X'7B22726F77223A347D',1800000000.0);
CREATE TABLE grp(
 id integer primary key, key text, due double precision not null, gate smallint not null default 0, keeper bigint,
 suspect smallint not null default 0, owner bigint, upto bigint not null default 0, turn bigint not null default 0);
INSERT INTO "grp" VALUES(2,'order-2',1800000000.0,1,NULL,0,NULL,4,1);
INSERT INTO "grp" VALUES(3,'order-3',1800000000.0,3,3,0,NULL,4,1);
INSERT INTO "grp" VALUES(4,NULL,1799999820.0,0,NULL,0,NULL,4,1);
CREATE TABLE meta(version bigint not null);
INSERT INTO "meta" VALUES(1);
CREATE TABLE plan(
 id integer primary key autoincrement, hash text not null unique, processor text not null, plan text not null);
INSERT INTO "plan" VALUES(1,'hash','order','{"main":"order"}');
CREATE TABLE revoked(
 worker bigint not null, run bigint not null, grp bigint not null, primary key(worker, run));
CREATE TABLE run(
 id integer primary key, grp bigint not null, key text, processor text not null, due double precision not null,
 priority smallint not null default 0, state smallint not null default 0, wake double precision,
 waits smallint not null default 0, rested bigint, woke bigint, body blob, digest text not null,
 submitter text not null, number text not null, submitted double precision not null, not_before double precision,
 deadline double precision, start_by double precision, expiry double precision, deliveries bigint not null default 0,
 ask text, asked bigint, reason text not null default '', closed text, outcome text not null default '', error text,
 ended double precision, purged double precision);
INSERT INTO "run" VALUES(1,1,'order-1','order',1800000000.0,0,2,NULL,0,NULL,NULL,X'7B2261223A317D','d','ACME','1',1800000000.0,NULL,NULL,NULL,NULL,0,NULL,NULL,'','completed','ok',NULL,1800000000.0,NULL);
INSERT INTO "run" VALUES(2,2,'order-2','order',1800000000.0,0,1,NULL,1,1,NULL,X'7B2261223A317D','d','ACME','2',1800000000.0,NULL,NULL,NULL,NULL,0,NULL,NULL,'',NULL,'',NULL,NULL,NULL);
INSERT INTO "run" VALUES(3,3,'order-3','order',1800000000.0,0,3,NULL,0,NULL,NULL,X'7B2261223A317D','d','ACME','3',1800000000.0,NULL,NULL,NULL,NULL,0,NULL,NULL,'undo failed',NULL,'error','{"type":"ValueError","message":"no"}',NULL,NULL);
INSERT INTO "run" VALUES(4,4,NULL,'order',1799999820.0,3,0,NULL,0,NULL,NULL,X'7B2261223A317D','d','ACME','4',1800000000.0,NULL,NULL,NULL,NULL,0,NULL,NULL,'',NULL,'',NULL,NULL,NULL);
CREATE TABLE signal(
 id integer primary key autoincrement, run bigint not null, name text not null, data blob, at double precision not null, fate text);
CREATE TABLE step(
 run bigint not null, n bigint not null, kind text not null default 'step', thread text not null default '',
 name text not null, t0 double precision not null, t1 double precision not null, outcome text not null default 'ok',
 attempts bigint not null default 1, error text, result text, plan bigint not null, pos text, ctx blob,
 retry smallint not null default 1, primary key(run, n));
INSERT INTO "step" VALUES(1,1,'step','','step1',11.0,11.5,'ok',1,NULL,NULL,1,'{"at":1}',X'7B226E223A317D',1);
INSERT INTO "step" VALUES(2,1,'step','','step1',11.0,11.5,'ok',1,NULL,NULL,1,'{"at":1}',X'7B226E223A317D',1);
INSERT INTO "step" VALUES(3,1,'step','','step1',11.0,11.5,'ok',1,NULL,NULL,1,'{"at":1}',X'7B226E223A317D',1);
CREATE TABLE worker(
 id integer primary key autoincrement, lease double precision not null, host text not null, pid bigint not null, began double precision not null);
CREATE UNIQUE INDEX grp_key on grp(key) where key is not null;
CREATE INDEX grp_free on grp(due, id) where owner is null and gate = 0;
CREATE INDEX grp_held on grp(owner) where owner is not null;
CREATE UNIQUE INDEX run_identity on run(submitter, number);
CREATE INDEX run_ready on run(grp, id) where state = 0;
CREATE INDEX run_resting on run(grp, id) where state in (1, 3);
CREATE INDEX run_wake on run(wake) where wake is not null;
CREATE INDEX run_expiry on run(expiry) where expiry is not null;
CREATE INDEX run_closed on run(closed, id) where state = 2;
CREATE INDEX run_kept on run(ended) where state = 2 and purged is null;
CREATE INDEX event_run on event(run, id);
CREATE INDEX signal_pending on signal(run, id) where fate is null;
CREATE VIEW v_run_status as select r.id, r.submitter, r.number, r.processor, case when r.state = 2 then r.closed when r.state = 3 then 'suspended'
 when r.state = 1 and exists (select 1 from step s where s.run = r.id) then 'waiting'
 when r.state = 0 and g.owner is not null and r.id = coalesce((select p.id from run p where p.grp = g.id and p.state = 0 and p.id <= g.upto
 and coalesce((select max(s.n) from step s where s.run = p.id), 0) > coalesce(p.rested, 0) limit 1), (select k.id from run k where k.id = g.keeper and k.state = 0),
 (select min(f.id) from run f where f.grp = g.id and f.state = 0 and f.id <= g.upto
  and (f.woke is null or f.woke < g.turn))) then 'running' else 'queued' end as state,
 case when r.state = 2 then r.outcome else '' end as outcome, r.reason, r.error, r.key as "group", r.priority,
 r.deliveries, r.submitted, (select s.t0 from step s where s.run = r.id and s.n = 1) as started, r.ended, r.deadline,
 r.not_before,
 coalesce((select s.name from step s where s.run = r.id and s.kind <> 'mark' order by s.n desc limit 1), '')
  as activity,
 (select count(*) from step s where s.run = r.id and s.kind = 'step') as steps
 from run r left join grp g on g.id = r.grp and r.state <> 2;
CREATE VIEW v_journal as select j.run, row_number() over (partition by j.run order by j.n, j.part, j.at, j.id) as number,
 j.at, j.kind, j.thread, j.name, j.began, j.outcome, j.attempts, j.error, j.result, j.who, j.why from (
 select id as run, -1 as n, 0 as part, submitted as at, 0 as id, 'submitted' as kind, '' as thread, processor as name,
 null as began, '' as outcome, 0 as attempts, null as error, null as result, submitter as who, '' as why from run
 union all select run, n, 0, t1, 0, kind, thread, name, t0, outcome, attempts, error, result, '', '' from step
 union all select run, n, 1, at, id, kind, '', name, null, outcome, 0, error, null, who, why from event
 union all select r.id, coalesce((select max(s.n) from step s where s.run = r.id), 0), 1, r.ended, 9223372036854775806,
 'ended', '', '', null, r.outcome, 0, r.error, null, '', r.reason from run r where r.state = 2
 union all select r.id, coalesce((select max(s.n) from step s where s.run = r.id), 0), 1, r.purged, 9223372036854775807,
 'purged', '', '', null, '', 0, null, null, '', '' from run r where r.purged is not null) j;
CREATE VIEW v_step_times as select s.run, s.n, r.submitter, r.number, r.processor, s.thread, s.name, s.kind, s.outcome,
 s.attempts, s.t0 as began, s.t1 as ended, s.t1 - s.t0 as seconds
 from step s join run r on r.id = s.run where s.kind in ('step', 'attempt');
CREATE VIEW v_queue_depth as select r.processor, sum(case when r.state = 0 and g.owner is null then 1 else 0 end) as ready,
 sum(case when r.state = 0 and g.owner is not null then 1 else 0 end) as held,
 sum(case when r.state = 1 then 1 else 0 end) as asleep, sum(case when r.state = 3 then 1 else 0 end) as suspended,
 min(case when r.state = 0 then r.submitted end) as oldest
 from (select grp, processor, state, submitted from run where state = 0
  union all select grp, processor, state, submitted from run where state in (1, 3)) r
 left join grp g on g.id = r.grp group by r.processor;
CREATE VIEW v_incidents as select r.id as run, r.submitter, r.number, r.processor, r.key as "group", r.reason, r.error,
 r.deliveries, (select max(e.at) from event e where e.run = r.id and e.kind = 'suspended') as since,
 (select count(*) from run w where w.grp = r.grp and w.state = 0)
  + (select count(*) from run w where w.grp = r.grp and w.state in (1, 3)) - 1 as held_up
 from run r where r.state in (1, 3) and r.state = 3;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('worker',1);
INSERT INTO "sqlite_sequence" VALUES('plan',1);
INSERT INTO "sqlite_sequence" VALUES('event',1);
COMMIT;
