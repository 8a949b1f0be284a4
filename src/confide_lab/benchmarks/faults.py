"""The list of all planted faults and what catches each.

    confide lab bench faults                 every fault: what is wrong, in which method, which attack and which test catch it
    confide lab bench faults --run           runs them: caught or NOT CAUGHT, its clean twin, and the seconds
    confide lab bench faults --run cells     those whose family, method or name holds the word

Without --run nothing is computed. The exit code of a run is 1 when a fault is not caught or a clean twin does not pass.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from confide_lab.benchmarks.planted.catalogue import FAMILIES, Fault, runs_in

__all__ = ["chosen", "main"]

#: Draws of the faults that are found by sampling, as in the tests.
_RUNS = 40_000


def chosen(words: Sequence[str]) -> list[tuple[str, Fault]]:
    """(family, fault) of every fault whose family, method or name holds one of the words; all without words."""
    return [
        (family, fault)
        for family, faults in FAMILIES.items()
        for fault in faults
        if not words or any(word.lower() in f"{family} {fault.of} {fault.name}".lower() for word in words)
    ]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="confide lab bench faults", description="Planted faults and what catches them."
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="part of a family's, a method's or a fault's name")
    parser.add_argument("--run", action="store_true", help="run each fault and its clean twin")
    asked = parser.parse_args(arguments)
    found = chosen(asked.words)
    return _run(found) if asked.run else _list(found)


def _list(found: Sequence[tuple[str, Fault]]) -> int:
    for family in dict.fromkeys(family for family, _ in found):
        print(f"\n{family} ({runs_in(family)})")
        for own, fault in found:
            if own == family:
                where = f" [{fault.of}]" if fault.of else ""
                print(f"  {fault.name}{where}: {fault.what}\n      caught by {fault.attack}")
    print(f"\n{len(found)} planted faults")
    return 0


def _run(found: Sequence[tuple[str, Fault]]) -> int:
    bad = 0
    for family, fault in found:
        start = time.perf_counter()
        caught, passed = bool(fault.caught(_RUNS).violated), not fault.passed(_RUNS).violated
        bad += not (caught and passed)
        said = "caught    " if caught else "NOT CAUGHT"
        twin = "" if passed else ", its CLEAN TWIN does not pass"
        print(
            f"{said} {time.perf_counter() - start:6.2f} s  {family}: {fault.name}, by {fault.attack}{twin}", flush=True
        )
    print(f"{len(found) - bad} of {len(found)} planted faults caught, their clean twins passed")
    return int(bad > 0)
