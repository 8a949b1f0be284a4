"""A publication as a file: its questions in TOML, with the schema, the privacy and the accuracy that they are asked for at."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.errors import PlanError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.publication.publication import Publication

__all__ = ["Asked"]


_PRIVACY: Mapping[str, Any] = {"mu": GDP, "rho": ZCDP, "epsilon": PureDP}
_FILE = """write for example
schema = "schema.toml"
privacy = { mu = 0.5 }
[questions.model]
method = "least_squares"
formula = "income ~ age"
share = 2"""


@dataclass(frozen=True)
class Asked:
    """What a publication's TOML file says: the questions, and where it names them the schema's path, the privacy and n."""

    publication: Publication
    schema: Path | None
    privacy: Guarantee | None
    n: int | None
    accuracy: Mapping[str, Any] | None = None
    cv: Mapping[str, Any] | None = None

    @classmethod
    def from_toml(cls, path: str | Path) -> Asked:
        """Read a file: a table `questions.NAME` for each question with `method`, its parameters and `share`; beside them `schema` (a path,
        from the file's own folder), `privacy` (mu, rho or epsilon, and delta, relation) and `n`. In place of privacy and shares each
        question may have an `accuracy`, as in { all = 0.02 }, of n records: half-widths of 95 % intervals; or a `cv`, as in 0.02 or
        { count = 0.02 }: standard errors over the numbers.

        Raises `PlanError` for a file that cannot be read, an entry that is unknown, and what `Publication` refuses.
        """
        try:
            data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise PlanError(
                f"the publication {str(path)!r} cannot be read: {type(error).__name__}; give a TOML file"
            ) from None
        except tomllib.TOMLDecodeError as error:
            raise PlanError(f"the publication {str(path)!r} is no TOML: {error}; {_FILE}") from None
        questions = data.pop("questions", None)
        unknown = sorted(set(data) - {"schema", "privacy", "n"})
        if unknown or not isinstance(questions, dict) or not all(isinstance(one, dict) for one in questions.values()):
            what = f"has the unknown entry {unknown[0]!r}" if unknown else "has no tables of questions"
            raise PlanError(f"the publication {str(path)!r} {what}; {_FILE}")
        shares = {name: one.pop("share") for name, one in questions.items() if "share" in one}
        accuracy, cv = (
            {name: one.pop(target) for name, one in questions.items() if target in one} for target in ("accuracy", "cv")
        )
        for name, one in questions.items():
            if not isinstance(one.get("method"), str):
                raise PlanError(f"the question {name!r} of {str(path)!r} names no method; {_FILE}")
        asked = {name: {"method": one.pop("method"), "parameters": _tuples(one)} for name, one in questions.items()}
        schema = data.get("schema")
        if schema is not None and not isinstance(schema, str):
            raise PlanError(f"schema must be the path of a schema's file, got {schema!r}; {_FILE}")
        return cls(
            Publication(asked, shares or None),
            None if schema is None else Path(path).parent / schema,
            None if "privacy" not in data else _privacy(data["privacy"]),
            data.get("n"),
            accuracy or None,
            cv or None,
        )

    @property
    def priced(self) -> bool:
        """Whether the file says what may be spent, by a privacy or by how sharp its questions must be."""
        return self.privacy is not None or self.accuracy is not None or self.cv is not None

    def terms(self, privacy: Guarantee | None = None) -> dict[str, Any]:
        """What `gate.plan` is asked for: the file's privacy, another one, or how sharp the questions must be.

        Raises `PlanError` where a budget stands beside targets, which it would leave unmet.
        """
        if self.accuracy is None and self.cv is None:
            return {"privacy": privacy or self.privacy}
        if privacy is not None or self.privacy is not None:
            name = next(iter(self.accuracy or self.cv or {}))
            raise PlanError(
                f"the question {name!r} says how sharp it must be, by accuracy or cv, and a privacy what all may cost; give one of them: "
                "leave the privacy out, or take accuracy and cv out of the questions"
            )
        return {"accuracy": self.accuracy, "cv": self.cv}


def _tuples(value: Any) -> Any:
    """Lists as tuples, as they come back from a plan's file."""
    if isinstance(value, dict):
        return {key: _tuples(one) for key, one in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _privacy(given: Any) -> Guarantee:
    """A guarantee from { mu = 0.5 }, { rho = 0.1 }, { epsilon = 1, delta = 1e-6 }, with a relation or without."""
    levels = [name for name in _PRIVACY if isinstance(given, dict) and name in given]
    if len(levels) != 1 or not set(given) <= {levels[0], "delta", "relation"}:
        raise PlanError(
            f"privacy must be one of mu, rho and epsilon, with delta and relation where they belong, got {given!r}; {_FILE}"
        )
    (name,), others = levels, {key: value for key, value in given.items() if key == "delta"}
    kind = ApproxDP if name == "epsilon" and others else _PRIVACY[name]
    made: Guarantee = kind(given[name], **others, relation=given.get("relation"))
    return made
