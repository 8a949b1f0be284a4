"""What the files that confide writes look like, entry by entry, and the one check of a whole body when it is read.

Nothing is converted before it was measured here: an attacker can sign any body, for the digest in the file is no secret. What passes has
the types, sizes and kinds of the entries that confide writes, so that building the objects takes time in proportion to the file. It need
not be true: whether a release agrees with its plan is asked by `confide.infer`, whether it is the paid one by `confide.verify`.
"""

from __future__ import annotations

from typing import Any

from confide.protocol.serialization.facts import COUNT, FINITE, array, integers, made, setting
from confide.protocol.serialization.shapes import (
    BOOLEAN,
    DIGEST,
    NAME,
    TEXT,
    Shape,
    each,
    fraction,
    fraction_text,
    kinds,
    maybe,
    named,
    one_of,
    record,
    refuse,
    whole,
)
from confide.protocol.serialization.statements import GUARANTEE
from confide.protocol.serialization.trees import STEP, norm_of_law, parts_tree, tree
from confide.protocol.spending.laws import LAWS

__all__ = ["check_body"]

#: Of questions in a publication.
CHILDREN = 1_000
_PASSES = 10**6
_PROVENANCE = record({"kind": NAME, "text": TEXT})
_GRID = {
    "name": NAME,
    "kind": NAME,
    "low": FINITE,
    "high": FINITE,
    "steps": whole(2, 2**22),
    "scale": FINITE,
    "on_missing": TEXT,
    "provenance": _PROVENANCE,
}
_UNIT = record(
    {"column": NAME, "rows": whole(1, COUNT), "rule": one_of(None, "keep", "weight")},
    {"per": NAME, "groups": maybe(whole(1, COUNT))},
)
_CLUSTER = record(
    {"column": NAME, "size": FINITE, "icc": FINITE, "count": maybe(whole(2, COUNT)), "largest": maybe(FINITE)}
)


def _listed(value: Any, where: str) -> None:
    """A stratum and its PSUs, or how many they are."""
    if not isinstance(value, list) or len(value) != 2:
        raise refuse(where, "a stratum and its PSUs")
    TEXT(value[0], where)
    (each(NAME, 2) if isinstance(value[1], list) else whole(2, COUNT))(value[1], where)


_DESIGN = record(
    {},
    {
        "weight": NAME,
        "strata": NAME,
        "psu": NAME,
        "psus": each(_listed, 1),
        "size": FINITE,
        "icc": FINITE,
        "largest": FINITE,
        "count": whole(2, COUNT),
        "deff": FINITE,
        "cap": one_of("auto", "full"),
        "population": whole(1, COUNT),
        "fraction": FINITE,
    },
)


def _unit(value: Any, where: str) -> None:
    """A declared unit's name, or an enforced one."""
    (_UNIT if isinstance(value, dict) else NAME)(value, where)


SCHEMA = record(
    {
        "columns": each(
            kinds(
                "kind",
                {
                    "numeric": record(_GRID),
                    "integer": record(_GRID),
                    "categorical": record(
                        {
                            "name": NAME,
                            "kind": NAME,
                            "levels": each(TEXT, 2, 2**22),
                            "on_missing": TEXT,
                            "provenance": _PROVENANCE,
                        }
                    ),
                },
            ),
            1,
        ),
        "rows_per_unit": whole(1, COUNT),
        "unit": maybe(_unit),
        "dataset": maybe(NAME),
    },
    {"cluster": _CLUSTER, "design": _DESIGN},
)
QUESTION = record(
    {},
    {
        "subset": each(TEXT),
        "contrasts": setting,
        "kind": TEXT,
        "quantiles": setting,
        "prior": TEXT,
        "formula": TEXT,
        "loss": TEXT,
        "covers": TEXT,
    },
)
_FACTS_OF_A_PLAN: dict[str, Shape] = {
    "method": record({"name": NAME, "version": NAME, "parameters": named(setting)}),
    "question": maybe(QUESTION),
    "requested": GUARANTEE,
    "guarantees": each(GUARANTEE, 1, 100),
    "event": tree,
    "passes": whole(1, _PASSES),
    "n": maybe(whole(0, COUNT)),
    "public_inputs": named(TEXT),
    "constants": named(setting),
    "target": TEXT,
    "covers": TEXT,
    "warnings": each(TEXT, most=1_000),
}
# the questions of a publication are about its own records, and have no questions of their own
_CHILD = record({"name": NAME, "plan": record(_FACTS_OF_A_PLAN)})
_PLAN = record({"schema": SCHEMA, **_FACTS_OF_A_PLAN})
_PUBLICATION = record(
    {"schema": SCHEMA, **_FACTS_OF_A_PLAN, "event": parts_tree, "children": each(_CHILD, 1, CHILDREN)}
)


def PLAN(value: Any, where: str) -> None:
    """A plan, or one with children."""
    (_PUBLICATION if isinstance(value, dict) and "children" in value else _PLAN)(value, where)


def noisy(value: Any, where: str) -> None:
    """One noisy statistic: a law that is known, with its norm and its scale; an opaque one has neither."""
    _NOISY(value, where)
    if value["law"] != "opaque":
        norm_of_law(value, where)
    scale = fraction_text(value["scale"])
    if (value["law"] == "opaque") != (scale == 0) or (value["law"] == "opaque" and value["norm"] != "none"):
        raise refuse(where, "a statistic with the scale of its law, or an opaque one without")


_NOISY = record(
    {
        "values": integers,
        "step": STEP,
        "law": one_of(*LAWS, "opaque"),
        "scale": fraction(0),
        "norm": NAME,
    }
)
RELEASE = record(
    {
        "plan": PLAN,
        "status": one_of("released", "no_reply"),
        "statistics": named(noisy),
        "public": named(array),
        "artifacts": named(TEXT),
        "guarantees": each(GUARANTEE, 1, 100),
        "simulated": BOOLEAN,
    },
    {"statuses": named(one_of("released", "no_reply", "failed"))},
)
SIDECAR = record(
    {
        "release": RELEASE,
        "made": made,
        "columns": named(one_of("text", "whole", "double")),
        "content_sha256": DIGEST,
    }
)
_BODIES: dict[str, Shape] = {"plan": PLAN, "release": RELEASE, "synthetic table": SIDECAR}


def check_body(kind: str, body: Any) -> None:
    """Raise `ReleaseError` unless the body is one that confide writes into files of that kind.

    Asked where a file is written or read; the gate asks before it charges, so that nothing is paid for that could not be read back.
    """
    _BODIES[kind](body, kind)
