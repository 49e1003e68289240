"""The invariants of the tables, each a query that finds what violates it: shared by both dialects.

They hold between any two transactions, so that a store can be examined while it works.
"""

from __future__ import annotations

from collections.abc import Iterator

from iocflow.store.contract import Violation
from iocflow.store.sql.schema import NEXT
from iocflow.store.sql.tables import Tables

AT_MOST = 100
"""How much evidence of one violation is given."""

LAST = "coalesce((select max(s.n) from step s where s.run = r.id), 0)"

CHECKS: dict[str, tuple[str, ...]] = {
    "a group is held by a worker that lives": (
        """select 'group ' || g.id || ' is held by worker ' || g.owner from grp g where g.owner is not null
 and not exists (select 1 from worker w where w.id = g.owner)""",
    ),
    "one run of a group is in progress at most": (
        f"""select 'group ' || r.grp || ' has ' || count(*) || ' runs in progress' from run r
 where r.state = 0 and {LAST} > coalesce(r.rested, 0) group by r.grp having count(*) > 1""",
    ),
    "an open run has a group, and a free group an open run": (
        """select 'run ' || r.id || ' has no group' from run r where r.state <> 2 and r.grp <> 0
 and not exists (select 1 from grp g where g.id = r.grp)""",
        """select 'run ' || r.id || ' is of another key than its group' from run r join grp g on g.id = r.grp
 where r.state <> 2 and coalesce(r.key, '') <> coalesce(g.key, '')""",
        """select 'group ' || g.id || ' has no open run' from grp g where g.owner is null
 and not exists (select 1 from run r where r.grp = g.id and r.state = 0)
 and not exists (select 1 from run r where r.grp = g.id and r.state in (1, 3))""",
    ),
    "a free group says what its runs are": (
        f"""select 'group ' || g.id || ' is open, and has no ready run' from grp g
 where g.owner is null and g.gate = 0 and {NEXT} is null""",
        f"""select 'group ' || g.id || ' is taken for empty, and has a ready run' from grp g
 where g.owner is null and g.gate = 1 and {NEXT} is not null""",
        """select 'group ' || g.id || ' is kept by no sleeping run' from grp g where g.gate = 2
 and not exists (select 1 from run r where r.id = g.keeper and r.grp = g.id and r.state = 1)""",
        f"""select 'group ' || w.id || ' does not wait for as long as its next run' from (
 select g.id, g.due, (select r.due from run r where r.id = {NEXT}) as due_next from grp g
 where g.owner is null and g.gate = 0) w where w.due <> w.due_next""",
        """select 'group ' || g.id || ' has gate ' || g.gate from grp g where g.gate not in (0, 1, 2, 3)""",
    ),
    "a suspended run quarantines its group": (
        """select 'group ' || g.id || ' is quarantined by no suspended run' from grp g where g.gate = 3
 and not exists (select 1 from run r where r.id = g.keeper and r.grp = g.id and r.state = 3)""",
        """select 'run ' || r.id || ' is suspended, and its group is not quarantined by it' from run r
 left join grp g on g.id = r.grp where r.state = 3 and (coalesce(g.gate, 0) <> 3 or coalesce(g.keeper, 0) <> r.id)""",
        """select 'group ' || g.id || ' is quarantined, and held by worker ' || g.owner from grp g
 where g.gate = 3 and g.owner is not null""",
    ),
    "a run is in one of its states": (
        """select 'run ' || r.id || ' has state ' || r.state from run r where r.state not in (0, 1, 2, 3)""",
        """select 'run ' || r.id || ' is half closed' from run r
 where (r.state = 2) <> (r.closed is not null and r.ended is not null) or (r.closed is null) <> (r.ended is null)""",
        """select 'run ' || r.id || ' sleeps for ever' from run r
 where r.state = 1 and r.wake is null and r.waits = 0 and r.grp <> 0""",
        """select 'run ' || r.id || ' is awake, and has a time to wake' from run r
 where r.state <> 1 and (r.wake is not null or r.waits <> 0)""",
        """select 'run ' || r.id || ' is purged by half' from run r
 where (r.body is null) <> (r.purged is not null) or (r.purged is not null and r.state <> 2)""",
    ),
    "a closed run has no timer, signal or hold": (
        """select 'run ' || r.id || ' is closed, and has a time limit' from run r
 where r.state = 2 and r.expiry is not null""",
        """select 'signal ' || s.id || ' still waits for run ' || r.id || ', which is closed' from signal s
 join run r on r.id = s.run where s.fate is null and r.state = 2""",
        """select 'run ' || r.id || ' is past its deadline, and nobody will look' from run r
 where r.state in (0, 1) and r.deadline is not null and r.expiry is null
 and coalesce(r.ask, '') not in ('cancel', 'timeout')""",
    ),
    "rows are numbered from 1 without gaps": (
        """select 'run ' || s.run || ' has ' || count(*) || ' rows up to number ' || max(s.n) from step s
 group by s.run having min(s.n) <> 1 or max(s.n) <> count(*)""",
    ),
    "what is told of a run is told of one that there is": (
        """select 'row ' || s.n || ' is of run ' || s.run || ', which is none' from step s
 where not exists (select 1 from run r where r.id = s.run)""",
        """select 'event ' || e.id || ' is of run ' || e.run || ', which is none' from event e
 where not exists (select 1 from run r where r.id = e.run)""",
        """select 'signal ' || s.id || ' is of run ' || s.run || ', which is none' from signal s
 where not exists (select 1 from run r where r.id = s.run)""",
        """select 'row ' || s.n || ' of run ' || s.run || ' has plan ' || s.plan || ', which is none' from step s
 where s.plan <> 0 and not exists (select 1 from plan p where p.id = s.plan)""",
    ),
    "nothing changes without its row in the journal": (
        """select 'run ' || r.id || ' is suspended, and no event says so' from run r where r.state = 3
 and not exists (select 1 from event e where e.run = r.id and e.kind = 'suspended')""",
        """select 'run ' || r.id || ' was asked to ' || r.ask || ', and no event says so' from run r
 where r.ask in ('cancel', 'timeout') and not exists (select 1 from event e where e.run = r.id and e.kind = r.ask)""",
        """select 'run ' || r.id || ' goes on again, and no event says so' from run r
 where r.ask in ('again', 'done') and not exists (select 1 from event e where e.run = r.id and e.kind = 'retry')""",
        """select 'run ' || r.id || ' was lost with ' || r.deliveries || ' workers, and fewer events say so' from run r
 where r.deliveries > (select count(*) from event e where e.run = r.id and e.kind = 'lost')""",
        """select 'run ' || s.run || ' has ' || count(*) || ' signals, and not as many events' from signal s
 group by s.run having count(*) <> (select count(*) from event e where e.run = s.run and e.kind = 'signal')""",
    ),
    "a run is taken only from a worker that lives": (
        """select 'run ' || v.run || ' was taken from worker ' || v.worker || ', which is gone' from revoked v
 where not exists (select 1 from worker w where w.id = v.worker)""",
    ),
}


def examine(tables: Tables) -> Iterator[Violation]:
    """Yield what does not hold."""
    for invariant, queries in CHECKS.items():
        for sql in queries:
            for (what,) in tables.rows(f"{sql} limit {AT_MOST}"):
                yield Violation(invariant, what)
