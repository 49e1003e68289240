"""`advance`: the one meaning of a plan, which every engine drives.

It moves a position on by one reply and tells what to do next. It has no clock, thread, random number or I/O, and never
looks into a context, so that an engine can store a position and go on from it, in another process too.
"""

from __future__ import annotations

from fractions import Fraction

from iocflow.errors import ErrorRecord, StepLimitError, UnknownActivityError, record_of
from iocflow.plan import Command, End, Ended, Frame, Plan, Position, ProcessorPlan, Reply, RowOutcome, StepPlan
from iocflow.position import command_at, is_over, numbers_of, steps_of


def start(plan: Plan, *, seeded: bool = False) -> Position:
    """Return the first position of a run; `seeded` when there is seed data to set."""
    position: Position = {"stack": [], "ended": [], "end": None, "unwind": ""}
    move = _Move(plan, position)
    if seeded:
        position["stack"].append({"p": plan["main"], "path": "", "state": "seed", "seeding": True, "n": 1, "seq": 0})
    else:
        move.enter(plan["main"], "")
    return position


def ended(outcome: str, error: ErrorRecord) -> Position:
    """Return the position of a run that is over before anything of it began."""
    return {"stack": [], "ended": [], "end": End(outcome=outcome, error=error, raises=True, last=None), "unwind": ""}


def advance(plan: Plan, position: Position, reply: Reply | None) -> tuple[Command, Position]:
    """Return what to do next, and the position to go on from; `position` itself is left as it is.

    Without a reply the position does not move, and its command is given again.
    """
    if reply is not None:
        stack = [Frame(**frame) for frame in position["stack"]]
        position = {"stack": stack, "ended": [], "end": position["end"], "unwind": position["unwind"]}
        _Move(plan, position).take(reply)
    command = command_at(plan, position)
    if command["do"] == "fork":
        command["children"] = _children(plan, position["stack"])
    return command, position


def _children(plan: Plan, stack: list[Frame]) -> list[Position]:
    """Return the positions of a split's branches, or of a parallel for-each's items."""
    frame, within = stack[-1], f"{numbers_of(stack)}."
    processor = plan["p"][frame["p"]]
    split = processor["kind"] == "split"
    children = []
    for i in range(len(processor["steps"]) if split else frame["count"]):
        root: Frame = {"p": frame["p"], "path": frame["path"], "solo": True, "seq": i, "used": 0, "within": within}
        child: Position = {"stack": [root], "ended": [], "end": None, "unwind": ""}
        _Move(plan, child).begin(root, i if split else 0)
        children.append(child)
    return children


class _Move:
    """Moves a position, which it may change, on by one reply."""

    def __init__(self, plan: Plan, position: Position) -> None:
        self.plan, self.position, self.stack = plan, position, position["stack"]

    def take(self, reply: Reply) -> None:
        """Find out what `reply` answers."""
        frame = self.stack[-1]
        if "unwind" in reply:
            self.position["unwind"] = reply["unwind"]
            self.unwind(frame, reply["unwind"])
            return
        for one in self.stack:
            one.pop("fresh", None)
        state = frame["state"]
        if state == "handle":
            self.decided(frame, reply)
        elif state == "sleep":
            self.attempt(frame)
        elif state == "wait":
            frame["state"] = "execute"
        elif state == "execute":
            self.executed(frame, reply)
        elif state == "collect" and "error" in reply and not (frame["lost"] or is_over(frame["path"], reply["error"])):
            self.collect(frame, End(outcome="FAILED", error=reply["error"], raises=True, last=None))
        elif "error" in reply and not (state == "join" and self.too_many(frame)):
            self.frame_failed(frame, reply["error"])
        elif state == "seed" and reply.get("stop"):
            self.close(frame, "STOPPED")
        elif state == "seed":
            self.stack.pop()
            self.enter(frame["p"], "")
        elif state == "items":
            frame |= {"count": reply["count"], "i": -1, "ends": []}
            if self.of(frame)["each"]["parallel"] and frame["count"]:
                frame["state"] = "fork"
            else:
                self.next_item(frame)
        elif state == "collect":
            self.collected(frame)
        elif state == "fork":
            self.forked(frame, reply["ends"])
        else:
            self.joined(frame, reply)

    def unwind(self, frame: Frame, outcome: str, error: ErrorRecord | None = None, *, raises: bool = False) -> None:
        """Give up what is under way, and end with `outcome` after every `finally` from here outwards."""
        if "closing" in frame:
            frame["closing"] = {**frame["closing"], "outcome": outcome}
            self.follow(frame)
        else:
            self.close(frame, outcome, error, raises=raises)

    def of(self, frame: Frame) -> ProcessorPlan:
        """Return the plan of the frame's processor."""
        return self.plan["p"][frame["p"]]

    def step(self, frame: Frame) -> StepPlan:
        """Return the frame's current step."""
        return steps_of(frame, self.of(frame))[frame["at"]]

    def path(self, frame: Frame) -> str:
        """Return the path of the frame's current step."""
        return frame["path"] + self.step(frame)["name"]

    # Frames: enter, close, leave.

    def enter(self, processor: str, path: str) -> None:
        """Put a processor on the stack and begin with it."""
        frame: Frame = {"p": processor, "path": path, "seq": 0, "used": 0, "n": 1, "last": None}
        self.stack.append(frame)
        plan = self.of(frame)
        if plan["kind"] in ("split", "each"):
            frame["state"] = "fork" if plan["kind"] == "split" else "items"
        elif plan["steps"]:
            self.begin(frame, 0)
        else:
            self.close(frame, "COMPLETED")

    def close(self, frame: Frame, outcome: str, error: ErrorRecord | None = None, *, raises: bool = False) -> None:
        """End the frame's activities; run its `finally`, then leave it."""
        end = End(outcome=outcome, error=error, raises=raises, last=frame.get("last"))
        if self.of(frame)["finally"] and not {"closing", "solo", "seeding"} & set(frame):
            frame["closing"], frame["used"] = end, 0
            frame.pop("whole", None)
            self.begin(frame, 0)
        else:
            self.leave(end)

    def leave(self, end: End) -> None:
        """Take the innermost frame off the stack and tell the one below, whose step it was."""
        left = self.stack.pop()
        if not self.stack:
            self.position["end"] = end
            return
        below, unwind = self.stack[-1], self.position["unwind"]
        if unwind and (end["outcome"] == unwind or not any("closing" in one for one in self.stack)):
            self.unwind(below, end["outcome"], end["error"], raises=end["raises"])
        elif end["outcome"] == "FAILED" and end["error"] is not None:
            if (left["seq"], left["n"]) == (1, 0) and is_over(self.path(below), end["error"]):
                below["n"] -= 1  # nothing in it began
            self.step_failed(below, end["error"])
        else:
            self.executed(below, {"next": end["last"], "stop": end["outcome"] == "STOPPED"})

    def frame_failed(self, frame: Frame, error: ErrorRecord) -> None:
        """Ask the default handlers about an error that is no step's."""
        frame |= {"whole": True, "error": error}
        if self.of(frame)["handlers"] and not is_over(frame["path"], error):
            frame["state"] = "handle"
        else:
            self.close(frame, "FAILED", error, raises=True)

    # Steps: begin, attempt, executed, failed, decided.

    def begin(self, frame: Frame, at: int) -> None:
        """Begin the step at index `at`."""
        if "solo" not in frame:
            frame["seq"] += 1
        frame |= {"at": at, "n": 0, "asked": False, "last": None}
        frame.pop("error", None)
        self.attempt(frame)

    def attempt(self, frame: Frame) -> None:
        """Begin the next attempt of the current step."""
        frame |= {"n": frame["n"] + 1, "used": frame["used"] + 1}
        frame.pop("wait", None)
        limit, step = self.of(frame)["max"], self.step(frame)
        if frame["used"] > limit:
            frame["n"] -= 1
            error = record_of(StepLimitError, f"{self.path(frame)}: more than {limit} attempts; see max_steps")
            self.give_up(frame, error, raises=not self.of(frame)["handlers"], row=frame["n"] > 0)
        elif step["do"] == "activity":
            frame["state"] = "execute"
        else:
            frame["state"] = "nested"
            self.enter(step["ref"], f"{self.path(frame)}/")

    def executed(self, frame: Frame, reply: Reply) -> None:
        """Go on after an attempt, which may have failed or asked to stop, or left to wait and be made once more."""
        frame["asked"] = frame["asked"] or reply.get("stop", False)
        if "unbegun" in reply and "wait" not in frame:  # what waited had begun
            frame["n"] -= 1
        if "wait" in reply:
            frame |= {"state": "wait", "wait": reply["wait"]}
        elif "error" in reply:
            self.step_failed(frame, reply["error"])
        else:
            frame.pop("error", None)
            frame["last"] = reply.get("next")
            self.step_done(frame, "DONE", reply)

    def step_failed(self, frame: Frame, error: ErrorRecord) -> None:
        """Ask the step's handlers, then the processor's; without any the frame fails, and the error is raised."""
        frame["error"] = error
        final = self.position["unwind"] or is_over(self.path(frame), error)
        if not final and (self.step(frame)["handlers"] or self.of(frame)["handlers"]):
            frame["state"] = "handle"
        else:
            self.give_up(frame, error, raises=True)

    def decided(self, frame: Frame, reply: Reply) -> None:
        """Do what the handlers decided about the frame's error."""
        error: ErrorRecord = {**frame["error"], "logged": True}
        frame["asked"] = frame.get("asked", False) or reply.get("stop", False)
        frame["error"] = error
        error, decision = (reply["error"], "raise") if "error" in reply else (error, reply.get("decision", ""))
        if "whole" in frame:
            if decision == "stop":
                self.close(frame, "STOPPED")
            else:
                self.close(frame, "FAILED", error, raises=decision == "raise")
        elif decision == "retry" and reply.get("delay"):
            frame |= {"state": "sleep", "delay": reply["delay"]}
        elif decision == "retry":
            self.attempt(frame)
        elif decision == "goto" and not (frame["asked"] and "closing" not in frame):
            self.go_to(frame, reply["goto"] or "")
        elif decision in ("continue", "stop", "goto"):
            frame["asked"] = frame["asked"] or decision == "stop"
            self.step_done(frame, "HANDLED", {})
        else:
            self.give_up(frame, error, raises=decision == "raise")

    def go_to(self, frame: Frame, name: str) -> None:
        """Go on with the activity of that name, if there is exactly one to go to."""
        found = [i for i, step in enumerate(self.of(frame)["steps"]) if step["name"] == name]
        if len(found) == 1 and "closing" not in frame and self.of(frame)["kind"] in ("sequence", "choice"):
            self.row(frame, "HANDLED")
            self.begin(frame, found[0])
        else:
            what = "is wired twice" if len(found) > 1 else "is no activity that can be gone to from here"
            known = ", ".join(step["name"] for step in self.of(frame)["steps"])
            error = record_of(UnknownActivityError, f"GoTo({name!r}): {name!r} {what} (known: {known})")
            self.give_up(frame, error, raises=True)

    def step_done(self, frame: Frame, outcome: RowOutcome, reply: Reply) -> None:
        """Add the row, and go on with what comes next."""
        stopped = frame["asked"] and "closing" not in frame
        self.row(frame, "STOPPED" if stopped else outcome)
        if stopped:
            self.close(frame, "STOPPED")
        elif self.of(frame)["kind"] == "choice" and "closing" not in frame:
            self.route(frame, reply, handled=outcome == "HANDLED")
        elif self.of(frame)["kind"] == "each" and not {"solo", "closing"} & set(frame):
            self.collect(frame)
        else:
            self.follow(frame)

    def follow(self, frame: Frame) -> None:
        """Begin the next step in order, or close the frame."""
        if "solo" not in frame and frame["at"] + 1 < len(steps_of(frame, self.of(frame))):
            self.begin(frame, frame["at"] + 1)
        elif "closing" in frame:
            self.leave(frame["closing"])
        else:
            self.close(frame, "COMPLETED")

    def route(self, frame: Frame, reply: Reply, *, handled: bool) -> None:
        """Pick the next activity of an exclusive choice."""
        routes = self.of(frame)["routes"][self.step(frame)["name"]]
        named, asked = reply.get("next"), reply.get("goto")
        target = routes["else"]
        if not handled and named in routes and named is not None:
            target = routes[named]
        elif not handled and asked:
            target = asked
        if target == "end":
            self.close(frame, "COMPLETED")
        else:
            self.begin(frame, [step["name"] for step in self.of(frame)["steps"]].index(target))

    def give_up(self, frame: Frame, error: ErrorRecord, *, raises: bool, row: bool = True) -> None:
        """Take a step's failure as final: for the frame, for this item of a for-each, or for this part of `finally`."""
        if row:
            self.row(frame, "FAILED", error)
            error = {**error, "logged": True}  # engines log the error of a FAILED row, unless it was logged before
        if "closing" in frame:
            end = frame["closing"]
            if end["error"] is None:
                frame["closing"] = {**end, "outcome": "FAILED", "error": error, "raises": raises}
            else:
                note = f"finally, {self.path(frame)}: {error['type']}: {error['message']}"
                frame["closing"] = {**end, "error": {**end["error"], "notes": [*end["error"]["notes"], note]}}
            self.follow(frame)
        elif self.of(frame)["kind"] == "each" and "solo" not in frame and not is_over(self.path(frame), error):
            self.collect(frame, End(outcome="FAILED", error=error, raises=raises, last=None))
        else:
            self.close(frame, "FAILED", error, raises=raises)

    def row(self, frame: Frame, outcome: RowOutcome, error: ErrorRecord | None = None) -> None:
        """Add a row to the trail for the current step."""
        error = error or frame.get("error")
        row = Ended(path=self.path(frame), outcome=outcome, attempts=frame["n"], error=error, result=frame["last"])
        self.position["ended"].append(row)

    # Items and branches.

    def next_item(self, frame: Frame) -> None:
        """Begin the next item, with a bound of its own on the number of attempts."""
        frame["i"] += 1
        if frame["i"] < frame["count"]:
            frame |= {"used": 0, "fresh": True}
            self.begin(frame, 0)
        else:
            self.close(frame, "COMPLETED")

    def collect(self, frame: Frame, *failed: End) -> None:
        """Keep what the item made, or that it failed, where somebody wants to know, and go on."""
        frame |= {"lost": bool(failed), "ends": [*frame["ends"], *failed]}
        if self.of(frame)["each"]["keeps"]:
            frame["state"] = "collect"
        else:
            self.collected(frame)

    def collected(self, frame: Frame) -> None:
        """Begin the next item, unless this one was one too many to be lost."""
        if frame["lost"] and self.too_many(frame):
            errors = [end["error"] for end in frame["ends"] if end["error"]]
            error = errors[0] if len(errors) == 1 else self.group(frame, errors)
            self.close(frame, "FAILED", error, raises=frame["ends"][-1]["raises"])
        else:
            self.next_item(frame)

    def forked(self, frame: Frame, ends: list[End]) -> None:
        """Join the branches or parallel items; of a split whose branches all failed nothing is left to join."""
        frame |= {"state": "join", "ends": ends}
        if self.of(frame)["kind"] == "split" and all(end["outcome"] == "FAILED" for end in ends):
            self.joined(frame, {})

    def joined(self, frame: Frame, reply: Reply) -> None:
        """End a split, or a parallel for-each, after the join, which may have failed too, or asked to stop."""
        errors = [end["error"] for end in frame["ends"] if end["outcome"] == "FAILED" and end["error"]]
        over = next((error for error in errors if is_over(frame["path"], error)), None)
        if over or self.too_many(frame):
            raises = any(end["raises"] for end in frame["ends"])
            errors += [reply["error"]] if "error" in reply else []
            self.close(frame, "FAILED", over or self.group(frame, errors), raises=raises)
        else:
            stopped = reply.get("stop") or any(end["outcome"] == "STOPPED" for end in frame["ends"])
            self.close(frame, "STOPPED" if stopped else "COMPLETED")

    def too_many(self, frame: Frame) -> bool:
        """Return whether more branches or items failed than may."""
        may_fail: int | str = self.of(frame)["each"].get("may_fail", 0)
        allowed = int(frame["count"] * Fraction(may_fail[:-1]) / 100) if isinstance(may_fail, str) else may_fail
        return len(frame["ends"]) > allowed and sum(end["outcome"] == "FAILED" for end in frame["ends"]) > allowed

    def group(self, frame: Frame, errors: list[ErrorRecord]) -> ErrorRecord:
        """Return the one error of several branches or items."""
        parts = "branches" if self.of(frame)["kind"] == "split" else "items"
        path = frame["path"].rstrip("/") or frame["p"]
        record = record_of(ExceptionGroup, f"{len(errors)} of the {parts} of {path} failed")
        return {**record, "errors": errors, "logged": all(error["logged"] for error in errors)}
