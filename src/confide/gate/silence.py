"""The private part runs in silence: no exception or warning of it leaves with words of its own."""

from __future__ import annotations

import threading
import warnings
from dataclasses import replace

import numpy as np

from confide.errors import ReleaseError, SourceError
from confide.protocol import Method, Noise, Plan, Release, Source, seal
from confide.protocol.serialization.reading import check_body

__all__ = ["drawn"]


class _Quiet:
    """Warnings off while any release runs: their words may come from records.

    Python's filters belong to the whole process, so releases in several threads share one change of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._filters.__exit__(None, None, None)


_QUIET = _Quiet()


def drawn(method: Method, source: Source, planned: Plan, noise: Noise, charged: str) -> Release:
    """Run the private part; no exception or warning of it leaves with words of its own."""
    done, problem = None, ""
    try:
        with _QUIET, np.errstate(all="ignore"):
            done = seal(method, source, planned, noise)
            done = replace(done, plan=done.plan.published())
            check_body("release", done.to_dict())  # what was paid for can be read, and its digest be told
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of a compiled library is no Exception, and its text may quote a record
        if noise.simulated:
            raise
        # a source's own errors name public facts alone; one that anybody else raised under that name says nothing
        own = isinstance(error, SourceError) and _raised_by_a_source(error)
        problem, done = f" ({error})" if own else "", None
    if done is None:
        # raised outside the handler: even "from None" would leave the first error, with its words, in __context__
        raise ReleaseError(f"the release failed after it began{problem}; {charged}, and nothing is released")
    return done


def _raised_by_a_source(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__", "")).startswith("confide.sources.")
