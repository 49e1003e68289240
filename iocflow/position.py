"""What a position says: where it stands in its plan, what is to be done there, and how it will end."""

from __future__ import annotations

from typing import cast

from iocflow.errors import ErrorRecord
from iocflow.plan import Command, Frame, Mode, Plan, Position, ProcessorPlan, StepPlan


def steps_of(frame: Frame, processor: ProcessorPlan) -> list[StepPlan]:
    """Return the steps that the frame goes through now: the processor's own, or those of its `finally`."""
    return processor["finally"] if "closing" in frame else processor["steps"]


def command_at(plan: Plan, position: Position) -> Command:
    """Return what is to be done at `position`; whoever carries out a `fork` adds the children."""
    if position["end"] is not None:
        return {"do": "end", "end": position["end"]}
    frame = position["stack"][-1]
    processor, state = plan["p"][frame["p"]], frame["state"]
    if state == "sleep":
        return {"do": "sleep", "delay": frame["delay"]}
    if state == "wait":
        path, wait = frame["path"] + steps_of(frame, processor)[frame["at"]]["name"], frame["wait"]
        return {"do": "wait", "path": path, "name": wait["name"], "timeout": wait["timeout"]}
    bind = [(one["p"], one["i"]) for one in position["stack"] if one.get("fresh")]
    path = frame["path"].rstrip("/") or frame["p"]
    if state == "fork":
        return {"do": "fork", "p": frame["p"], "path": path, "bind": bind}
    mode = cast(Mode, state)
    command: Command = {"do": "run", "mode": mode, "p": frame["p"], "path": path, "attempt": frame["n"], "bind": bind}
    if state == "join":
        failed = {i: end["error"] for i, end in enumerate(frame["ends"]) if end["outcome"] == "FAILED"}
        command["failed"] = [i for i, error in failed.items() if not is_over(frame["path"], error)]
    if state == "collect":
        command["failed"] = [frame["i"]] if frame["lost"] else []
        command["item"] = frame["i"]
    if "seeding" not in frame and "whole" not in frame and state in ("execute", "handle"):
        step = steps_of(frame, processor)[frame["at"]]
        command["step"], command["path"] = step, frame["path"] + step["name"]
        command["key"] = f"{command['path']}#{numbers_of(position['stack'])}"
    if state == "execute" and any("error" in one for one in position["stack"]):
        command["error"] = [one["error"] for one in position["stack"] if "error" in one][-1]
    if state == "handle":
        command["own"] = command["step"]["handlers"] if "step" in command else []
        command["default"], command["error"] = processor["handlers"], frame["error"]
    if state == "execute" and processor["kind"] == "choice" and "closing" not in frame:
        command["names"] = [*processor["routes"], "end"]
    return command


def is_stopping(position: Position) -> bool:
    """Return whether what is under way, or over, ends STOPPED: a stop that was asked for and is not ignored."""
    ends = [position["end"]]
    for frame in position["stack"]:
        if "closing" not in frame and frame.get("asked"):
            return True
        ends += [frame.get("closing"), *frame.get("ends", ())]
    return any(end["outcome"] == "STOPPED" for end in ends if end)


def is_over(path: str, error: ErrorRecord | None) -> bool:
    """Return whether the error is the end of a time limit around what has that path."""
    over = error.get("over") if error else None
    return over is not None and path.startswith(over and f"{over}/")


def numbers_of(stack: list[Frame]) -> str:
    """Return what tells this step from all others of the run; it is the same for each of its attempts."""
    return stack[0].get("within", "") + ".".join(str(frame["seq"]) for frame in stack)
