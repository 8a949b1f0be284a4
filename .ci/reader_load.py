"""What a reader of confide must hold in mind, in one table, and whether it rose.

    python .ci/reader_load.py                     the table
    python .ci/reader_load.py --json              the same numbers for a machine
    python .ci/reader_load.py --ceilings          exit 1 if a number lies above its ceiling in .ci/ceilings.json, as `make test` asks
    python .ci/reader_load.py --lower             write today's numbers where they lie below their ceilings
    python .ci/reader_load.py --files tables.means    the files of one slice, in the order in which they are entered

Part 1, slices. A slice is one question asked twice in the same process: the second call is profiled, so imports and caches are left out.
Each reads 2,000 made-up rows, asks once with simulated noise and no ledger, and prints the result.

    files      files of the package with a function that was entered
    functions  functions that were entered (comprehensions, lambdas and generated functions left out)
    lines      lines of these functions, without docstrings, comments and blank lines
    arrows     ordered pairs of files where a function of the first calls one of the second (frames outside the package are looked through)
    both ways  pairs of files that call each other in both directions

Threads that a call starts are followed. With simulated noise the numbers are the same in each run.

The toll is what every question pays: the files that all slices enter, and the lines of the functions that all slices enter.

Part 2, source. Counted on the syntax trees of the package; the description of each row stands beside its number.
"""

from __future__ import annotations

import argparse
import ast
import collections
import inspect
import io
import json
import pathlib
import re
import statistics
import sys
import threading
import types
from importlib import metadata

import confide as cf

ROOT = pathlib.Path(cf.__file__).parent
BASE = str(ROOT) + "/"
CEILINGS = pathlib.Path(__file__).with_name("ceilings.json")
METHODS = ("methods",)  # where the families of methods live
SUMS = ("aggregates", "sums")  # where maps that families share live: the present name and the one to come
SPARE = ("self", "cls", "args", "kwargs", "others")  # parameters that need no description
# Registered names that are words of another meaning in these files. Leave one here only with what it is.
WORDS = {
    "ask/local.py": ("logistic", "poisson"),  # losses of a local fit
    "local/fits/losses.py": ("logistic", "poisson"),
    "local/precision.py": ("logistic", "poisson"),
    "local/__init__.py": ("shares",),  # a function of the room
    "ask/tests.py": ("proportion",),  # a kind of test of a table
    "core/files.py": ("quantiles",),  # a field of the options of a result
    "core/units/contributions.py": ("contributions",),  # a budget item
    "marginaleffects.py": ("poisson",),  # a family of R's glm
    "registry.py": ("select",),  # a place below `confide`
    "results/classes.py": ("shares",),  # a column
    "schema/formulas/expression.py": ("counts", "proportion", "quantiles"),  # words that a formula may hold
    "schema/settings.py": ("shares",),  # a key of the schema's file
    "schema/toml.py": ("shares",),
    "sklearn/transformer.py": ("correlation",),  # a scale
    "cli/options.py": ("ratios",),  # a kind of picture
    "studio/script.py": ("shares",),  # a parameter of a publication
}


# Part 1: slices


def slices():
    """The five questions: name -> a function without arguments that reads the data, asks and prints."""
    lines = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    binary = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Categorical(["no", "yes"])})
    groups = cf.Schema({"g": cf.Categorical(["a", "b", "c"]), "v": cf.Numeric(0, 100)})
    people = cf.Schema({"smoker": cf.Categorical(["no", "yes"], on_missing="no")})
    frames = {id(s): s.sample(2_000, seed=1) for s in (lines, binary, groups, people)}

    def read(schema):
        return cf.read(frames[id(schema)], schema)

    def common(mu=1.0):
        return {"privacy": cf.GDP(mu), "ledger": None, "noise": cf.noise.SimulatedNoise(1)}

    def pure():
        return {"privacy": cf.PureDP(0.5), "ledger": None, "noise": cf.noise.SimulatedNoise(1)}

    return {
        "linear_regression": lambda: str(cf.linear_regression("y ~ x", read(lines), **common())),
        "logistic_regression": lambda: str(cf.logistic_regression("y ~ x", read(binary), **common())),
        "tables.counts": lambda: str(cf.tables.counts("g", read(groups), inference="population", **common())),
        "tables.means": lambda: str(cf.tables.means("v ~ g", read(groups), inference="population", **common())),
        "intervals.proportion": lambda: str(cf.intervals.proportion(read(people), "smoker", **pure())),
    }


def profiled(ask):
    """Functions entered, (file, first line, name) in order of first entry, and arrows (caller's file, callee's file) of one call."""
    entered, arrows = {}, set()

    def own(frame):
        return frame.f_code.co_filename.startswith(BASE) and not frame.f_code.co_name.startswith("<")

    def watch(frame, event, _):
        if event != "call" or not own(frame):
            return
        code = frame.f_code
        entered.setdefault((code.co_filename[len(BASE) :], code.co_firstlineno, code.co_name))
        caller = frame.f_back
        while caller is not None and not own(caller):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != code.co_filename:
            arrows.add((caller.f_code.co_filename[len(BASE) :], code.co_filename[len(BASE) :]))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        ask()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(entered), arrows


def function_lines(source):
    """Lines of code of each function of one file, by the line of its first decorator (as code objects count) or of its def."""
    found = {}
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            count = sum(1 for i in range(start, node.end_lineno + 1) if i in source.code)
            found[start] = found[node.lineno] = count
    return found


# Part 2: source


class Source:
    """One file: its text, syntax tree, and the numbers of its lines that hold code (no docstring, comment or blank line)."""

    def __init__(self, path):
        self.path, self.text = path, path.read_text(encoding="utf-8")
        self.name = path.relative_to(ROOT).as_posix()
        self.tree, self.lines = ast.parse(self.text), self.text.split("\n")
        if self.lines and not self.lines[-1]:
            self.lines.pop()
        self.docstrings = {id(d): d for d in map(docstring, ast.walk(self.tree)) if d is not None}
        spare = {i for d in self.docstrings.values() for i in range(d.lineno, d.end_lineno + 1)}
        self.code = {
            i
            for i, line in enumerate(self.lines, 1)
            if i not in spare and line.strip() and not line.strip().startswith("#")
        }

    @property
    def room(self):
        """First folder below the package, or the file's own name."""
        return self.name.split("/")[0]

    @property
    def module(self):
        parts = self.name[: -len(".py")].split("/")
        return ".".join([ROOT.name, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def docstring(node):
    """The constant that is the docstring of a module, class or function; None for anything else."""
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            return first.value
    return None


def imports(source):
    """Import statements of one file, as (node, whether inside a function)."""
    inside = {
        id(n)
        for f in ast.walk(source.tree)
        if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))
        for n in ast.walk(f)
        if isinstance(n, (ast.Import, ast.ImportFrom))
    }
    return [(n, id(n) in inside) for n in ast.walk(source.tree) if isinstance(n, (ast.Import, ast.ImportFrom))]


def imported_modules(source, modules):
    """Modules of the package that one file imports."""
    found = set()
    for node, _ in imports(source):
        names = [a.name for a in node.names]
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = source.module.split(".")
                package = package if source.name.endswith("__init__.py") else package[:-1]
                base = ".".join([*package[: len(package) - node.level + 1], *([base] if base else [])])
            names = [f"{base}.{n}" if f"{base}.{n}" in modules else base for n in names]
        found |= {n for n in names if n in modules}
    return found


def registered_names():
    """Names under which the installed project registers its methods."""
    return {
        e.name
        for e in metadata.entry_points(group="confide.methods")
        if e.value.split(":")[0].split(".")[0] == ROOT.name
    }


def quoted(source, names):
    """Registered names that are the whole of a text constant in one file; `__all__` and `WORDS` left out."""
    spare = {
        id(c)
        for n in ast.walk(source.tree)
        if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in n.targets)
        for c in ast.walk(n)
    }
    return {
        n.value
        for n in ast.walk(source.tree)
        if isinstance(n, ast.Constant) and id(n) not in spare and n.value in names and isinstance(n.value, str)
    } - set(WORDS.get(source.name, ()))


def members(source):
    """Names that the classes of one file define: methods, properties, fields, attributes set on self."""
    found = set()
    for c in ast.walk(source.tree):
        if not isinstance(c, ast.ClassDef):
            continue
        for n in c.body:
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.add(n.name)
            for t in [n.target] if isinstance(n, ast.AnnAssign) else n.targets if isinstance(n, ast.Assign) else []:
                found |= {t.id} if isinstance(t, ast.Name) else set()
        found |= {
            n.attr
            for n in ast.walk(c)
            if isinstance(n, ast.Attribute)
            and isinstance(n.ctx, ast.Store)
            and isinstance(n.value, ast.Name)
            and n.value.id == "self"
        }
    return found


def asked_by_text(source):
    """Names that one file asks for with getattr or hasattr and a literal."""
    return [
        n.args[1].value
        for n in ast.walk(source.tree)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name)
        and n.func.id in ("getattr", "hasattr")
        and len(n.args) > 1
        and isinstance(n.args[1], ast.Constant)
        and isinstance(n.args[1].value, str)
    ]


def public_callables():
    """What `confide` and its public modules export and can be called, each once, with the name under which it was found."""
    rooms = [cf, *(m for m in (getattr(cf, n, None) for n in cf.__all__) if isinstance(m, types.ModuleType))]
    seen = set()
    for room in rooms:
        for name in getattr(room, "__all__", [n for n in dir(room) if not n.startswith("_")]):
            thing = getattr(room, name, None)
            if callable(thing) and not isinstance(thing, types.ModuleType) and id(thing) not in seen:
                seen.add(id(thing))
                yield f"{room.__name__}.{name}", thing


def undescribed():
    """(public callables, their parameters, parameters that their docstring never names before its first example)."""
    callables = parameters = missing = 0
    for _, thing in public_callables():
        try:
            own = [
                p
                for p in inspect.signature(thing).parameters.values()
                if p.name not in SPARE and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
            ]
        except (TypeError, ValueError):
            continue
        words = set(re.findall(r"\w+", (inspect.getdoc(thing) or "").split(">>>")[0]))
        callables, parameters, missing = (
            callables + 1,
            parameters + len(own),
            missing + sum(p.name not in words for p in own),
        )
    return callables, parameters, missing


# The table


def measure():
    """All numbers, as a dictionary that JSON can hold."""
    sources = {s.name: s for s in (Source(p) for p in sorted(ROOT.rglob("*.py")))}
    lines = {name: function_lines(s) for name, s in sources.items()}

    questions = slices()
    for ask in questions.values():
        ask()  # imports and caches
    walks = {name: profiled(ask) for name, ask in questions.items()}

    def load(functions):
        return sum(lines.get(f, {}).get(line, 0) for f, line, _ in functions)

    table = {
        name: {
            "files": len({f for f, _, _ in functions}),
            "functions": len(functions),
            "lines": load(functions),
            "arrows": len(arrows),
            "both_ways": sum(1 for a, b in arrows if a < b and (b, a) in arrows),
        }
        for name, (functions, arrows) in walks.items()
    }
    common_files = set.intersection(*({f for f, _, _ in functions} for functions, _ in walks.values()))
    common = set.intersection(*(set(functions) for functions, _ in walks.values()))

    rooms = collections.Counter()
    for s in sources.values():
        rooms[s.room] += len(s.code)
    folders = collections.Counter(s.path.parent.relative_to(ROOT).as_posix() for s in sources.values())
    largest_folder = max(folders, key=lambda f: (folders[f], f))
    largest = max(sources.values(), key=lambda s: (len(s.lines), s.name))
    modules = {s.module: s for s in sources.values()}
    pairs = {
        (s.name, m)
        for s in sources.values()
        if s.room in METHODS
        for m in imported_modules(s, modules)
        if modules[m].room in SUMS
    }
    names = registered_names()
    quotes = [(n, s.name) for s in sources.values() if s.room not in METHODS for n in quoted(s, names)]
    per_name = collections.Counter(n for n, _ in quotes)
    known = set().union(*(members(s) for s in sources.values()))
    asked = [n for s in sources.values() for n in asked_by_text(s) if n in known and not n.startswith("__")]
    callables, parameters, missing = undescribed()
    own_imports = [(s, n, inside) for s in sources.values() for n, inside in imports(s)]
    return {
        "version": cf.__version__,
        "slices": table,
        "toll": {"files": len(common_files), "functions": len(common), "lines": load(common)},
        "source": {
            "files": len(sources),
            "median_lines": int(statistics.median(len(s.lines) for s in sources.values())),
            "depth": max(len(s.path.relative_to(ROOT).parts) - 1 for s in sources.values()),
            "largest_folder": folders[largest_folder],
            "largest_file": len(largest.lines),
            "code_lines": sum(rooms.values()),
            "import_lines": len({(s.name, i) for s, n, _ in own_imports for i in range(n.lineno, n.end_lineno + 1)}),
            "methods_to_sums": len(pairs),
            "quoted_names": len(quotes),
            "most_quoted": max(per_name.values(), default=0),
            "asked_by_text": len(asked),
            "asked_names": len(set(asked)),
            "inner_imports": sum(inside for _, _, inside in own_imports),
            "public_names": len(cf.__all__),
            "undescribed_parameters": missing,
        },
        "notes": {
            "largest_folder": largest_folder,
            "largest_file": largest.name,
            "quoted": dict(sorted(per_name.items(), key=lambda item: (-item[1], item[0]))),
            "callables": callables,
            "parameters": parameters,
        },
        "rooms": dict(sorted(rooms.items(), key=lambda item: -item[1])),
        "walk": {name: list(dict.fromkeys(f for f, _, _ in functions)) for name, (functions, _) in walks.items()},
    }


def show(found):
    """The table as text."""
    out, notes, source = io.StringIO(), found["notes"], found["source"]
    print(
        f"{'one question, second call':28}{'files':>8}{'functions':>11}{'lines':>8}{'arrows':>8}{'both ways':>11}",
        file=out,
    )
    for name, row in found["slices"].items():
        print(
            f"{name:28}{row['files']:8,}{row['functions']:11,}{row['lines']:8,}{row['arrows']:8,}{row['both_ways']:11,}",
            file=out,
        )
    toll = found["toll"]
    print(f"{'toll: common to all':28}{toll['files']:8,}{toll['functions']:11,}{toll['lines']:8,}", file=out)
    quoted_most = ", ".join(f"{name} {count}" for name, count in list(notes["quoted"].items())[:6])
    spare = (
        f"of {notes['parameters']:,} parameters of {notes['callables']} public callables, not named in the docstring"
    )
    rows = {
        "files": "Python files of the package",
        "median_lines": "median lines of a file",
        "depth": "depth of folders",
        "largest_folder": f"files in the largest folder ({notes['largest_folder']})",
        "largest_file": f"lines of the largest file ({notes['largest_file']})",
        "code_lines": "lines of code (no docstrings, comments, blank lines)",
        "import_lines": "of them lines of import statements",
        "methods_to_sums": f"file pairs {METHODS[0]} -> {' or '.join(SUMS)}",
        "quoted_names": "registered method names quoted outside methods/ (name and file)",
        "most_quoted": f"files that quote the most quoted one ({quoted_most})",
        "asked_by_text": "getattr/hasattr with a literal that a class of the project defines",
        "asked_names": "different literals among them",
        "inner_imports": "import statements inside functions",
        "public_names": "public names, len(confide.__all__)",
        "undescribed_parameters": spare,
    }
    print("\nsource", file=out)
    for key, words in rows.items():
        print(f"{source[key]:10,}  {words}", file=out)
    print("\nlines of code by room", file=out)
    for room, count in found["rooms"].items():
        print(f"{count:10,}  {room}", file=out)
    return out.getvalue()


def above(found, ceilings):
    """Sentences about numbers that lie above their ceiling."""
    for part in ("slices", "toll", "source"):
        for key, most in ceilings.get(part, {}).items():
            own = found[part].get(key)
            for inner, ceiling, value in (
                [(f"{key}.{k}", m, own[k]) for k, m in most.items()] if isinstance(most, dict) else [(key, most, own)]
            ):
                if value > ceiling and inner != "median_lines":
                    yield f"{part}.{inner} is {value:,}, above its ceiling of {ceiling:,}"


def lowered(found, ceilings):
    """The ceilings, each at the smaller of itself and today's number."""
    return {
        key: lowered(found[key], most) if isinstance(most, dict) else min(found[key], most)
        for key, most in ceilings.items()
    }


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--json", action="store_true", help="print JSON")
    words.add_argument("--ceilings", action="store_true", help="exit 1 if a number lies above its ceiling")
    words.add_argument("--lower", action="store_true", help="lower the ceilings to today's numbers")
    words.add_argument(
        "--files",
        metavar="SLICE",
        choices=list(slices()),
        help="print the files of one slice in the order in which they are entered",
    )
    options = words.parse_args()
    found = measure()
    if options.files:
        print("\n".join(found["walk"][options.files]))
    elif options.json:
        print(json.dumps({k: v for k, v in found.items() if k != "walk"}, indent=1))
    else:
        print(show(found), end="")
    known = json.loads(CEILINGS.read_text(encoding="utf-8"))
    if options.lower:
        CEILINGS.write_text(json.dumps(lowered(found, known), indent=1) + "\n", encoding="utf-8")
    faults = list(above(found, known)) if options.ceilings else []
    print("".join(f"{fault}\n" for fault in faults), end="", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
