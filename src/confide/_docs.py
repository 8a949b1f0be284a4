"""Docstrings in numpydoc: their sections, and the text of parameters that many callables share.

A shared text stands once, in `PARAMETERS`. A class or a call that leaves a parameter out of its own section gets it
from there, so that help, the command line and the reference all print it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from inspect import cleandoc
from textwrap import wrap
from typing import Any

#: name -> type, and one or two sentences.
PARAMETERS: Mapping[str, str] = {
    "formula": 'str\nR-style formula, such as ``"income ~ age + region"``.',
    "column": "str\nColumn of the schema.",
    "data": "Source\nRecords behind a schema, from `confide.read`.",
    "privacy": "Guarantee\nCost of the release, such as ``GDP(0.5)``. Required.",
    "ledger": "Ledger or None\nLedger to charge. None releases without accounting. Required.",
    "noise": "Noise, optional\nSource of noise. Only simulations pass ``SimulatedNoise(seed)``, which protects no one.",
    "n": (
        "int, optional\nNumber of records. Under substitution it is public and checked. Otherwise it only serves the forecast, is not "
        "checked and is not published."
    ),
    "where": "str, optional\nSubgroup, such as ``\"age >= 65 & region == 'N'\"``. Its size is protected.",
    "inference": (
        '{"population", "dataset"}\nWhat the intervals are about: the population that the records are a sample of, or exactly '
        "these records. Required."
    ),
    "population_size": (
        "int, optional\nPublic size of a finite population. The sampling variance is multiplied by 1 - n / population_size."
    ),
    "weights": (
        "str, optional\nNumeric column of weights with public bounds from 0 up. The noise grows with the largest weight over the mean "
        "weight, so declare bounds that few weights reach."
    ),
    "term_bounds": (
        'mapping of str to (float, float), optional\nPublic bounds of terms that have none, such as ``{"log(x)": [0, 9]}``.'
    ),
    "bounds": (
        '{"auto", "declared", "found"}, default "auto"\nTo which bounds columns are clipped before they are added up. "auto" finds the '
        "range of each numeric column privately, for a tenth of the cost, and keeps declared bounds where their noise is small. "
        '"found" uses the range also where they would do. "declared" finds none, and each column needs bounds in the schema.'
    ),
    "limit": (
        '{"auto", "none"}, default "auto"\nThreshold at which extreme scores are clipped. With "none" no tail assumption is needed and '
        "intervals are wider, for example 2.4 times."
    ),
    "clipping_check": "bool, default True\nWhether to measure the shares of clipped and unread values, which takes 1% of the cost.",
    "ranges": "mapping of str to ColumnRange, default {}\nRanges that the release found, by column.",
    "requested": "Guarantee\nGuarantee that the plan asked for.",
    "guarantee": "Guarantee\nGuarantee of the release.",
    "method": "str\nName and version of the method.",
    "response": 'str, default ""\nWhat the table is about; empty where nothing fits.',
    "status": 'str, default "valid"\nStatus of the result, such as ``"valid"`` or ``"imprecise"``.',
    "reason": 'str, default ""\nWhy the status is not valid, and what would be needed.',
    "flags": "tuple of str, default ()\nIds of what must be known about the result.",
    "target": "str\nThe estimand, in words.",
    "intervals_for": "str\nWhat the intervals account for.",
    "release_sha256": "str\nRelease ID: the SHA-256 of the release.",
    "drawn_sha256": 'str, default ""\nKey of the draws that simulated distributions need.',
    "facts": "tuple of (str, str), default ()\nFurther lines above the table: label and text.",
    "legend": "tuple of (str, str), default ()\nFurther notes below the table: label and text.",
    "heading": 'str, default ""\nWhat the title adds where the model is not the usual one.',
    "kept": 'str, default ""\nWhich rows of a unit count, where the others are truncated.',
    "simulated": "bool, default False\nWhether the noise is simulated and protects no one.",
    "names": "tuple of str\nNames of the estimates.",
    "estimates": "array of float\nEstimates, in the order of `names`.",
    "covariance": "array of float\nCovariance of the estimates, over sampling and privacy noise.",
    "noise_variance": "array of float\nVariance of the privacy noise in each estimate.",
    "df": "float or array of float\nDegrees of freedom of the t distribution of each interval.",
}

#: Error -> when it is raised, where many callables say the same of it.
RAISES: Mapping[str, str] = {
    "BudgetExceeded": "The cost does not fit the ledger. Nothing was drawn or charged.",
    "NoConversion": "No proof leads there.",
    "PlanError": "The formula, the column or a parameter is invalid. Nothing was charged.",
    "PrivacyError": "A parameter is outside its range.",
}


def sections(doc: str | None) -> dict[str, str]:
    """The sections of a docstring by their title, "" for what is before the first.

    >>> list(sections("A sum.\\n\\nParameters\\n----------\\nx : int\\n    A number."))
    ['', 'Parameters']
    """
    first, *others = re.split(r"(?m)^(?=[A-Z][A-Za-z ]+\n-{3,}$)", cleandoc(doc or ""))
    found = {"": first.strip()}
    for one in others:
        title, _, body = one.partition("\n")
        found[title] = body.partition("\n")[2].strip("\n")
    return found


def parameters(doc: str | None) -> dict[str, tuple[str, str]]:
    """Type and text of each parameter that a docstring documents.

    >>> parameters("A sum.\\n\\nParameters\\n----------\\nx, y : int\\n    A number.")["y"]
    ('int', 'A number.')
    """
    found = {}
    for one in re.split(r"(?m)^(?=\S)", sections(doc).get("Parameters", "")):
        head, _, text = one.partition("\n")
        names, mark, kind = head.partition(" : ")
        for name in names.split(", ") if mark else ():
            found[name.strip(" *")] = (kind.strip(), " ".join(text.split()))
    return found


def section(known: Mapping[str, tuple[str, str]], names: Iterable[str]) -> str:
    """The lines of a section Parameters: each name that is known, here or to all."""
    lines = []
    for name in names:
        kind, text = known.get(name) or tuple(PARAMETERS.get(name, "\n").split("\n"))
        if kind:
            lines += [f"{name} : {kind}", *(f"    {line}" for line in wrap(text, 75, break_on_hyphens=False))]
    return "\n".join(lines)


def joined(parts: Mapping[str, str]) -> str:
    """A docstring of its sections."""
    return "\n\n".join(
        f"{title}\n{'-' * len(title)}\n{body}" if title else body for title, body in parts.items() if body
    )


def completed(
    doc: str | None,
    names: Iterable[str],
    others: Iterable[str | None] = (),
    outcome: Mapping[str, str] | None = None,
) -> str:
    """A docstring that documents all `names`, in their order: in its own words, those of `others`, or the shared ones.

    outcome: the sections after the parameters, "Returns" and "Raises", where many callables share them.

    >>> print(completed("A table.", ["where"]).partition("where")[2].partition("\\n")[0])
     : str, optional
    """
    known: dict[str, tuple[str, str]] = {}
    for one in (*others, doc):
        known |= parameters(one)
    parts = sections(doc)
    return joined(
        {
            "": parts.pop(""),
            "Parameters": section(known, names),
            **(outcome or {}),
            **{k: v for k, v in parts.items() if k != "Parameters"},
        }
    )


def outcome(returns: str, *raises: str) -> dict[str, str]:
    """The sections "Returns" and "Raises". returns: type and text, or nothing; raises: errors of `RAISES`.

    >>> outcome("", "NoConversion")
    {'Returns': '', 'Raises': 'NoConversion\\n    No proof leads there.'}
    """
    return {"Returns": returns, "Raises": "\n".join(f"{name}\n    {RAISES[name]}" for name in raises)}


def tell(raises: str, *calls: Callable[..., Any], returns: str = "") -> None:
    """Complete docstrings by an error of `RAISES`, and by what is returned, under the type of the annotation."""
    for call in calls:
        answer = f"{call.__annotations__['return']}\n    {returns}" if returns else ""
        call.__doc__ = completed(call.__doc__, parameters(call.__doc__), outcome=outcome(answer, raises))


def of_class(kind: type[Any]) -> str | None:
    """The docstring of a class that is about to be a dataclass, with all of its fields; None where it has none."""
    if not kind.__doc__:
        return kind.__doc__
    names: dict[str, bool] = {}
    for one in reversed(kind.__mro__):
        if one is not kind and "__dataclass_fields__" not in vars(one):
            continue  # annotations of a class that is no dataclass make no fields
        own = getattr(one, "__dataclass_fields__", {})
        for name, annotation in vars(one).get("__annotations__", {}).items():
            if "ClassVar" not in str(annotation) and not name.startswith("_"):
                names[name] = name in own and own[name].kw_only is True
    ordered = sorted(names, key=lambda name: names[name])  # what has to be named comes last in a signature
    return completed(kind.__doc__, ordered, [one.__doc__ for one in reversed(kind.__mro__[1:-1])])
