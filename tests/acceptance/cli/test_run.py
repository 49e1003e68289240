"""`iocflow run` from the outside."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

SEED = ("--seed", '{"id": 1}')


def test_trail_and_end_are_printed(iocflow: Any, shop: Path) -> None:
    """A completed run prints a line per activity and the end, and leaves with 0."""
    done = iocflow("run", "shop.yaml", "greeting", *SEED)
    assert done.returncode == 0, done.stderr
    greet, say, end = done.stdout.splitlines()[-3:]
    assert re.fullmatch(r"  greet  DONE  +[\d.]+ ms", greet)
    assert re.fullmatch(r"  say    DONE  +[\d.]+ m?s", say)
    assert re.fullmatch(r"greeting: COMPLETED in [\d.]+ m?s, run [0-9a-f-]{36}", end)
    assert done.stderr == ""


def test_json_is_alone_on_standard_output(iocflow: Any, shop: Path) -> None:
    """--json prints one object with the agreed keys; what activities and children print goes to standard error."""
    done = iocflow("run", "shop.yaml", "greeting", *SEED, "--json")
    run = json.loads(done.stdout)
    assert list(run) == ["id", "processor", "outcome", "steps", "error"]
    assert (run["processor"], run["outcome"], run["error"]) == ("greeting", "COMPLETED", None)
    assert [step["activity"] for step in run["steps"]] == ["greet", "say"]
    for step in run["steps"]:
        assert list(step) == ["activity", "outcome", "attempts", "started", "ended", "error"]
        assert (step["outcome"], step["attempts"], step["error"]) == ("DONE", 1, None)
        started, ended = datetime.fromisoformat(step["started"]), datetime.fromisoformat(step["ended"])
        assert started.utcoffset() is not None
        assert started <= ended
    assert "said on standard output: Hello" in done.stderr
    assert "said by a child" in done.stderr


def test_stopped_run_is_well(iocflow: Any, shop: Path) -> None:
    """A run that an activity stopped leaves with 0 and tells the reason."""
    done = iocflow("run", "shop.yaml", "stopping", *SEED)
    assert done.returncode == 0
    assert "stopping: STOPPED (nobody is interested)" in done.stdout
    assert "say" not in done.stdout


def test_failed_run_names_error_and_activity(iocflow: Any, shop: Path) -> None:
    """A failed run leaves with 1; the error is on standard error with its activity, without a traceback."""
    done = iocflow("run", "shop.yaml", "failing", *SEED)
    assert done.returncode == 1
    assert "failing: FAILED" in done.stdout
    assert "iocflow: fail: ConnectionError: no route to Hello" in done.stderr
    assert "Traceback" not in done.stderr


def test_failed_run_in_json(iocflow: Any, shop: Path) -> None:
    """--json tells the error of the run and of the step; the exit status is the same."""
    done = iocflow("run", "shop.yaml", "failing", *SEED, "--json")
    run = json.loads(done.stdout)
    assert done.returncode == 1
    assert run["outcome"] == "FAILED"
    assert run["error"] == run["steps"][1]["error"] == "ConnectionError: no route to Hello"


def test_data_cannot_forge_the_trail(iocflow: Any, shop: Path) -> None:
    """Line breaks and terminal codes in an error or a reason to stop are escaped, in the trail and in the log."""
    module = shop.with_suffix(".py")
    text = module.read_text(encoding="utf-8")
    for old, new in (("nobody is", "nobody\\nsay DONE \\x1b[2J"), ("no route to", "no\\nroute \\x1b[2J")):
        text = text.replace(old, new)
    module.write_text(text, encoding="utf-8")
    stopped, failed = (iocflow("run", "shop.yaml", name, *SEED) for name in ("stopping", "failing"))
    assert "stopping: STOPPED (nobody\\nsay DONE \\x1b[2J interested) in " in stopped.stdout
    assert len(failed.stderr.splitlines()) == 2
    for written in (stopped.stdout, failed.stdout, failed.stderr):
        assert "\x1b" not in written
        assert "\nsay DONE" not in written
        assert "\nroute" not in written


@pytest.mark.parametrize("asked", [["--traceback"], ["--log-level", "debug"]])
def test_traceback_for_those_who_ask(iocflow: Any, shop: Path, asked: list[str]) -> None:
    """The traceback of a failed run is shown with --traceback and with a debug log."""
    done = iocflow("run", "shop.yaml", "failing", *SEED, *asked)
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr
    assert "shop.py" in done.stderr


def test_seed_of_the_wrong_shape_fails_before_the_first_activity(iocflow: Any, shop: Path) -> None:
    """A seed that does not fit is a failed run without a step, and the field is named."""
    done = iocflow("run", "shop.yaml", "greeting", "--seed", '{"id": "many"}')
    assert done.returncode == 1
    assert done.stdout.startswith("greeting: FAILED")
    assert "SeedError" in done.stderr
    assert "id" in done.stderr
    assert "Traceback" not in done.stderr


NO_CONTEXT = """

class Closed(Shop):
    def __init__(self) -> None:
        raise ConnectionError("no licence")
"""


@pytest.mark.parametrize("kind", ["sequence: [say]", "parallel-split: {a: say}", "sequence: [stop], finally: [say]"])
def test_a_run_that_cannot_begin_is_told_as_any_other(iocflow: Any, shop: Path, kind: str) -> None:
    """A context that cannot be made is a failed run without a step: one object with --json, and a line without it."""
    module = shop.with_suffix(".py")
    module.write_text(module.read_text(encoding="utf-8") + NO_CONTEXT, encoding="utf-8")
    text = shop.read_text(encoding="utf-8").replace(
        "  greeting: {", f"  closed: {{context: .Closed, {kind}}}\n  greeting: {{"
    )
    shop.write_text(text, encoding="utf-8")
    done = iocflow("run", "shop.yaml", "closed", *SEED, "--json")
    run = json.loads(done.stdout)
    assert done.returncode == 1
    assert list(run) == ["id", "processor", "outcome", "steps", "error"]
    assert (run["outcome"], run["steps"], run["error"]) == ("FAILED", [], "ConnectionError: no licence")
    done = iocflow("run", "shop.yaml", "closed", *SEED)
    assert done.returncode == 1
    assert done.stdout.startswith("closed: FAILED")
    assert "iocflow: before the first activity: ConnectionError: no licence" in done.stderr


def test_seed_from_file_and_standard_input(iocflow: Any, shop: Path) -> None:
    """@FILE and @- give the seed as well."""
    (shop.parent / "seed.json").write_text('{"id": 7}', encoding="utf-8")
    assert iocflow("run", "shop.yaml", "greeting", "--seed", "@seed.json").returncode == 0
    assert iocflow("run", "shop.yaml", "greeting", "--seed", "@-", stdin='{"id": 7}').returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "shop.yaml", "greetin"], "shop.yaml has no processor greetin; did you mean `greeting`?"),
        (["run", "shop.yml", "greeting"], "there is no file shop.yml; did you mean `shop.yaml`?"),
        (["run", "lost.yaml", "greeting"], "lost.yaml is a link that leads nowhere, to gone.yaml; let it lead to"),
        (["run", "los.yaml", "greeting"], "there is no file los.yaml; did you mean `shop.yaml`?"),
        (["run", ".", "greeting"], ". is a folder; name a container file in it"),
        (["run", "shop.yaml", "greeting", "--seed", '{"id": }'], "--seed:1:8: Expecting value"),
        (["run", "shop.yaml", "greeting", "--seed", "@gone.json"], "--seed @gone.json: No such file or directory"),
        (["run", "shop.yaml", "greeting", "--set", "word"], "'word' assigns nothing; write KEY=VALUE"),
        (["run", "shop.yaml", "greeting", "--log-format=xml"], "--log-format': 'xml' is not one of 'text', 'json'."),
        (["run", "shop.yaml", "greeting", "--log-level=loud"], "--log-level': 'loud' is not one of 'debug', 'info'"),
        (["run", "shop.yaml", "greeting", "--sed", "1"], "No such option"),
        (["run", "shop.yaml"], "Missing argument"),
        (["run", "shop:ap", "greeting"], "ap is not there, an App is wanted; did you mean `app`?"),
        (["run", "shop:nothing", "greeting"], "nothing is a int, an App is wanted"),
        (["run", "shopp:app", "greeting"], "there is no module shopp"),
        (["run", "shop:app", "greeting", "--set", "word=x"], "--profile and --set are for container files"),
        (["runn", "shop.yaml"], "No such command 'runn'. Did you mean 'run', 'runs'?"),
    ],
)
def test_wrong_use(iocflow: Any, shop: Path, arguments: list[str], message: str) -> None:
    """A mistake on the command line leaves with 2, says what to write, prints no result and no traceback."""
    (shop.parent / "lost.yaml").symlink_to("gone.yaml")
    done = iocflow(*arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_application_built_in_python(iocflow: Any, shop: Path) -> None:
    """`module:app` stands wherever a container file does; the module is found in the current folder."""
    done = iocflow("run", "shop:app", "greeting", *SEED)
    assert done.returncode == 0, done.stderr
    assert "greeting: COMPLETED" in done.stdout


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import shop\nshop.gone()\n", r"AttributeError: module 'shop' has no attribute 'gone' \(.*broken\.py:2\)"),
        ("\n1 / 0\n", r"ZeroDivisionError: division by zero \(.*broken\.py:2\)"),
        ("import nowhere.at_all\n", r"ModuleNotFoundError: No module named 'nowhere' \(.*broken\.py:1\)"),
        ("def x(:\n", r"SyntaxError: invalid syntax \(broken\.py, line 1\)"),
        ("import sys\nsys.exit(3)\n", r"SystemExit: 3 \(.*broken\.py:2\)"),
    ],
)
@pytest.mark.parametrize(
    "command", [("run", "broken:app", "greeting"), ("check", "broken:app"), ("graph", "broken:app")]
)
def test_a_module_that_cannot_be_imported(
    iocflow: Any, shop: Path, command: tuple[str, ...], code: str, why: str
) -> None:
    """An error in the user's own module is told with its line, as that of a file's package is: 3, with one line."""
    (shop.parent / "broken.py").write_text(code, encoding="utf-8")
    done = iocflow(*command)
    assert done.returncode == 3
    assert re.fullmatch(f"iocflow: broken:app: the module broken cannot be imported: {why}\n", done.stderr)


def test_the_traceback_of_a_module_that_cannot_be_imported(iocflow: Any, shop: Path) -> None:
    """Where it was raised is shown for those who ask."""
    (shop.parent / "broken.py").write_text("import shop\nshop.fail(None)\n", encoding="utf-8")
    assert 'shop.py", line ' in iocflow("run", "broken:app", "greeting", "--traceback").stderr


def test_values_and_profiles_override(iocflow: Any, shop: Path) -> None:
    """--set and --profile change the file's values; --set wins."""
    assert "Bonjour" in iocflow("run", "shop.yaml", "greeting", *SEED, "--set", "word=Bonjour").stdout
    assert "HELLO" in iocflow("run", "shop.yaml", "greeting", *SEED, "--profile", "loud").stdout
    both = ("--profile", "loud", "--set", "word=Ciao")
    assert "Ciao" in iocflow("run", "shop.yaml", "greeting", *SEED, *both).stdout


def test_mistakes_in_the_file_run_nothing(iocflow: Any, shop: Path) -> None:
    """A file with mistakes leaves with 3; all of them are reported with their places, and nothing is run."""
    text = shop.read_text(encoding="utf-8").replace(".Greet,", ".Gret,").replace("[stop, say]", "[stop, sya]")
    shop.write_text(text, encoding="utf-8")
    done = iocflow("run", "shop.yaml", "greeting", *SEED)
    assert done.returncode == 3
    assert re.search(r"shop\.yaml:6:\d+: ", done.stderr)
    assert re.search(r"shop\.yaml:14:\d+: .*sya.*did you mean `say`", done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_json_log(iocflow: Any, shop: Path) -> None:
    """With --log-format json every log line is an object; that of the failure tells run, processor, activity."""
    done = iocflow("run", "shop.yaml", "failing", *SEED, "--log-format", "json")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    (failed,) = (line for line in lines if line["exception"] and line["activity"] == "fail")
    assert (failed["processor"], failed["attempt"], failed["level"]) == ("failing", 1, "ERROR")
    assert failed["run_id"] in done.stdout


def test_secrets_are_masked_everywhere(iocflow: Any, shop: Path) -> None:
    """A secret's value is in no line that iocflow itself writes: trail, error, log, JSON."""
    env = {"SHOP_TOKEN": "hunter2secret"}
    for options in (["--log-level", "debug"], ["--json"], ["--log-format", "json"]):
        done = iocflow("run", "shop.yaml", "failing", *SEED, *options, env=env)
        assert done.returncode == 1
        assert "no route to Hello ***" in done.stdout + done.stderr
        assert "hunter2secret" not in done.stdout + done.stderr


INTERRUPTIONS = {
    "Abort": "class Abort(BaseException): ...",
    "GeneratorExit": "",
    "CancelledError": "from asyncio import CancelledError",
    "SystemExit": "",
    "BaseExceptionGroup": "",
}


FAILS = """raise ConnectionError(f"no route to {context.text or 'host'}")"""
BUILDS = "self.word, self.token = word, token"


def interrupting(shop: Path, name: str, line: str = FAILS, text: str = "'no route to ' + context.text") -> None:
    """Let the code of the shop raise what is no error where the line is; its text is an expression."""
    module = shop.with_suffix(".py")
    code = module.read_text(encoding="utf-8").replace("import sys\n", f"import sys\n{INTERRUPTIONS[name]}\n")
    more = ", [KeyboardInterrupt()]" if name == "BaseExceptionGroup" else ""
    module.write_text(code.replace(line, f"raise {name}({text}{more})"), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, []) for name in INTERRUPTIONS), ("Abort", ["--traceback"]), ("Abort", ["--log-format", "json"])],
)
def test_what_is_no_error_ends_a_run_like_one(iocflow: Any, shop: Path, name: str, options: list[str]) -> None:
    """Whatever an activity raises, the trail is shown, the text is masked, and the exit status is 1."""
    interrupting(shop, name)
    done = iocflow("run", "shop.yaml", "failing", *SEED, *options, env={"SHOP_TOKEN": "hunter2secret"})
    assert done.returncode == 1
    assert re.search(r"^  greet  DONE .*\n  fail   FAILED .*\nfailing: INTERRUPTED in ", done.stdout, re.MULTILINE)
    assert "failing was interrupted" in done.stderr
    assert re.search(rf"fail: .*{name}.*no route to Hello \*\*\*", done.stderr)
    assert "hunter2secret" not in done.stdout + done.stderr
    assert ("Traceback" in done.stderr) == bool(options)


@pytest.mark.parametrize("name", INTERRUPTIONS)
def test_what_is_no_error_as_json(iocflow: Any, shop: Path, name: str) -> None:
    """With --json there is one object all the same, with the steps that were done and the one that was at work."""
    interrupting(shop, name)
    done = iocflow("run", "shop.yaml", "failing", *SEED, "--json", env={"SHOP_TOKEN": "hunter2secret"})
    assert done.returncode == 1
    data = json.loads(done.stdout)
    assert (data["processor"], data["outcome"]) == ("failing", "INTERRUPTED")
    assert [(step["activity"], step["outcome"]) for step in data["steps"]] == [("greet", "DONE"), ("fail", "FAILED")]
    assert re.search(rf"{name}: no route to Hello \*\*\*", data["error"])
    assert "hunter2secret" not in done.stdout + done.stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_is_no_error_in_a_branch(iocflow: Any, shop: Path, options: list[str]) -> None:
    """A branch that is interrupted ends the run in the same way."""
    interrupting(shop, "Abort")
    text = shop.read_text(encoding="utf-8")
    new = "  split: {context: .Shop, parallel-split: {one: [fail], two: [greet]}}\nprofiles:"
    shop.write_text(text.replace("profiles:", new), encoding="utf-8")
    done = iocflow("run", "shop.yaml", "split", *SEED, *options)
    assert done.returncode == 1
    assert "INTERRUPTED" in done.stdout
    assert "Abort: no route to" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("options", [[], ["--json"], ["--traceback"], ["--log-format", "json"]])
def test_what_is_no_error_in_a_constructor(iocflow: Any, shop: Path, options: list[str]) -> None:
    """Whatever a constructor raises is one masked message, and its traceback is for those who ask."""
    interrupting(shop, "Abort", BUILDS, "f'no {word} {token}'")
    done = iocflow("run", "shop.yaml", "failing", *SEED, *options, env={"SHOP_TOKEN": "hunter2secret"})
    assert (done.returncode, done.stdout) == (1, "")
    assert "Abort: no Hello ***" in done.stderr
    assert "hunter2secret" not in done.stderr
    assert ("Traceback" in done.stderr) == ("--json" not in options and bool(options))


def test_exit_in_an_activity_is_a_failure(iocflow: Any, shop: Path) -> None:
    """`sys.exit(3)` in an activity cannot pretend that the file has mistakes."""
    done = iocflow("run", "shop.yaml", "leaving", *SEED)
    assert done.returncode == 1
    assert "leave: the user's code ended the process: SystemExit(3)" in done.stderr


def test_bean_that_cannot_be_built(iocflow: Any, shop: Path) -> None:
    """A constructor that raises leaves with 3 and the bean's place; --traceback shows where, and no secret."""
    module = shop.with_suffix(".py")
    broken = 'raise ConnectionError(f"{word} {token}")'
    module.write_text(module.read_text(encoding="utf-8").replace("self.word, self.token = word, token", broken))
    for options in ([], ["--traceback"], ["--log-format", "json", "--traceback"]):
        done = iocflow("run", "shop.yaml", "greeting", *SEED, *options, env={"SHOP_TOKEN": "hunter2secret"})
        assert done.returncode == 3
        assert "shop.yaml:6:" in done.stderr
        assert "ConnectionError: Hello ***" in done.stderr
        assert ("in __init__" in done.stderr) is ("--traceback" in options)
        assert "hunter2secret" not in done.stderr
