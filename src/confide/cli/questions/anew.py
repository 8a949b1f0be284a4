"""What `confide infer` may ask of a release otherwise than its plan did, at no further cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from confide.cli.options import Covers, value_of
from confide.cli.session import Refused

__all__ = ["Anew", "quantiles_of"]


def quantiles_of(text: str | None) -> tuple[float, ...] | None:
    """The quantiles of --q; `Refused` for what is none."""
    if text is None:
        return None
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 < one < 1 for one in found):
        raise Refused(f"--q takes numbers between 0 and 1, got {text!r}; write --q .25,.5,.75")
    return found


@dataclass(frozen=True)
class Anew:
    """A question to a release that is there: what is left out stays as the plan has it."""

    subset: Annotated[
        str | None,
        typer.Option(
            "--subset",
            metavar="A,B",
            help="Keep these coefficients only, by name or by factor; the intercept stays. Beside numeric columns the default "
            "line's smaller models have no intervals; those of --method ssp have.",
        ),
    ] = None
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", metavar="credible|confidence", help="Of an interval: a posterior, or confidence limits."
        ),
    ] = None
    prior: Annotated[
        str | None,
        typer.Option("--prior", metavar="PRIOR", help='Of a posterior: another prior, such as "beta(2, 5)".'),
    ] = None
    q: Annotated[str | None, typer.Option("--q", metavar="Q,Q", help="Of quantiles: others, such as .25,.5,.75.")] = (
        None
    )
    covers: Covers = None

    def given(self) -> dict[str, str | None]:
        """What was asked, by its option."""
        return {
            "--subset": self.subset,
            "--kind": self.kind,
            "--prior": self.prior,
            "--q": self.q,
            "--covers": self.covers,
        }

    def question(self) -> Any:
        """The question; None where nothing is asked anew."""
        from confide.protocol import Question

        if not any(given is not None for given in self.given().values()):
            return None
        return Question(
            subset=_names(self.subset),
            kind=self.kind,
            prior=self.prior,
            quantiles=quantiles_of(self.q),
            covers=self.covers,
        )


def _names(subset: str | None) -> tuple[str, ...] | None:
    """Names separated by commas, or a JSON list when a name has a comma in it."""
    if subset is None:
        return None
    names = value_of(subset)
    if isinstance(names, tuple) and names and all(isinstance(name, str) for name in names):
        return names
    return tuple(name.strip() for name in subset.split(",") if name.strip())
