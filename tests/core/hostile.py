"""Release files as an attacker would write them: any body under a digest that fits, and a process of its own that reads them."""

from __future__ import annotations

import hashlib
import json
import random
import select
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from confide.core.files import FORMAT

# Reads one JSON text a line, prints what became of it and how much processor time it took. Errors other than ours get a "!".
_READER = """
import json, resource, sys, time, traceback, warnings
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import confide as cf
warnings.simplefilter("ignore")
print('["ready", 0]', flush=True)
for line in sys.stdin:
    text, start = json.loads(line), time.process_time()
    try:
        release = cf.Release.from_json(text)
        str(release), release.plan.summary()
        cf.infer(release).summary()
        found = "read"
    except (cf.errors.ReleaseError, cf.errors.PlanError) as error:
        found = type(error).__name__
    except BaseException as error:
        found = "!" + "".join(traceback.format_exception(error))[-700:]
    print(json.dumps([found, time.process_time() - start]), flush=True)
"""
_WALL = 30.0  # seconds; several processes share the machine, so that the limit of the tests is on processor time


class Reader:
    """Another process that reads releases and infers from them: one that hangs is ended, and the test fails."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._answer() is not None

    def _answer(self) -> tuple[str, float] | None:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], _WALL)[0]:
            return None
        found, seconds = json.loads(self._process.stdout.readline())
        return found, seconds

    def read(self, text: str) -> tuple[str, float]:
        """What became of a file ("read", the name of our error, or "!" and another one), and the seconds of processor time."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        found = self._answer()
        if found is None:
            self.close()
            self._start()
            return "!hangs", _WALL
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def signed(body: Any, kind: str = "release") -> str:
    """A file with that body and the digest that belongs to it."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f'{{"confide":"{kind}","format_version":"{FORMAT}","sha256":"{digest}","body":{text}}}'


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of everything in a body."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*at, key)
        yield from places(item, (*at, key))


def at(body: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        body = body[key]
    return body


JUNK: list[Any] = [
    *(None, True, 0, -1, 2**63, 10**299, 10**400, 1.5, "", "x", "nan", "inf", "1/0", "0/1", "1e9999999", "9" * 100_000),
    *("0x1p+99999", "-0x1.0000000000000p-5", "0x1.8000000000000p+300", "1" + "0" * 250, "-5", "\x1b[2J", "\ud800"),
    *([], {}, {"a": 1}, {"float": "nan"}, {"fraction": "1e9999999"}, [[]] * 50, "a" * 50_000, float("nan")),
    *("released", "declined", "opaque", "grid_laplace", "l1", "GDP", "together", "y ~ a + b + a:b"),
]
INTEGERS = [
    "0",
    "1",
    "-7",
    "1048576",
    "-1" + "0" * 20,
    "1" + "0" * 60,
    "1" + "0" * 150,
    "-1" + "0" * 150,
    "1" + "0" * 299,
]
DOUBLES = [x.hex() for x in (0.0, -0.0, 1.0, -1.0, 1e-3, 1e-300, 1e9, 1e20, 1e100, 1e300, -1e300, 2.0**-1074, 17.0)]
TEXTS = ["y ~ a", "y ~ 0 + a + b", "y ~ a*b", "y ~ a + I(a**2)", "kind ~ x", "a", "safe", "classical", "", "substitute"]


def wild(draw: random.Random, body: Any) -> Any:
    """A body with entries left out, renamed, repeated, swapped or replaced by anything."""
    body = deepcopy(body)
    for _ in range(draw.choice([1, 1, 2, 3])):
        place = draw.choice([one for one in places(body) if draw.random() < 0.3 or len(one) < 4])
        inside, value = at(body, place[:-1]), at(body, place)
        action = draw.random()
        if action < 0.2:
            del inside[place[-1]]
        elif action < 0.7:
            inside[place[-1]] = deepcopy(draw.choice(JUNK))
        elif action < 0.8:
            inside[place[-1]] = deepcopy(at(body, draw.choice(list(places(body)))))
        elif isinstance(value, list):
            inside[place[-1]] = draw.choice([value[::-1], (value * 400)[:2_000]])
        elif isinstance(value, dict) and value:
            value["odd"] = value.pop(draw.choice(list(value)))
    return body


def tame(draw: random.Random, body: Any) -> Any:
    """A body of the right types throughout, with other numbers, texts, shapes and names in it."""
    body = deepcopy(body)
    for _ in range(draw.choice([1, 1, 2, 4])):
        roots = [
            ("statistics",),
            ("public",),
            ("plan", "method", "parameters"),
            ("plan", "constants"),
            ("plan", "schema"),
        ]
        root = draw.choice([*roots, ("plan",), ("guarantees",)])
        inside = [root + place for place in places(at(body, root))]
        if inside:
            _turn(draw, body, draw.choice(inside))
    return body


def _turn(draw: random.Random, body: Any, place: tuple[Any, ...]) -> None:
    inside, value = at(body, place[:-1]), at(body, place)
    if isinstance(value, dict) and set(value) == {"type", "shape", "data"}:
        _reshape(draw, value)
    elif isinstance(value, dict) and value and place[0] in ("statistics", "public"):
        value.pop(draw.choice(list(value)))
    elif isinstance(value, bool):
        inside[place[-1]] = not value
    elif isinstance(value, int):
        inside[place[-1]] = draw.choice([0, 1, 2, 7, 50, 10**6, 2**22, 2**40, 10**18, -1])
    elif isinstance(value, list) and value:
        inside[place[-1]] = draw.choice([value[:-1], [*value, value[0]], value[::-1], (value * 300)[:1_500]])
    elif isinstance(value, str):
        whole, real = value.lstrip("-").isdigit(), value.lstrip("-").startswith("0x")
        inside[place[-1]] = draw.choice(INTEGERS if whole else DOUBLES if real else TEXTS)


def _reshape(draw: random.Random, array: Any) -> None:
    size, values = len(array["data"]), INTEGERS if array["type"] == "integer" else DOUBLES
    longer = (array["data"] * 3)[: draw.randrange(3 * size + 1)]
    shape, data = draw.choice(
        [
            ([size], array["data"]),
            ([size, 1], array["data"]),
            ([len(longer)], longer),
            (array["shape"], [draw.choice(values)] * size),
            (array["shape"], [draw.choice(values) for _ in range(size)]),
        ]
    )
    array["shape"], array["data"] = shape, data
