"""The privacy statement of a release, for those who check outputs.

It says what was published, under which guarantee, by which method and from which budget. The output checker of a
research data center, a data protection officer or an archive needs the same few facts of every release, in a form
that a machine reads. Everything in the statement is in the release already, follows from it by proved conversions, or
is the package's description of the method. With a ledger, its entry and tip too. No estimate and no noisy number is
in it. A JSON Schema fixes its form (`schema_text`), so that a checker's own tools can refuse another form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from importlib.resources import files
from math import prod, sqrt
from pathlib import Path
from textwrap import wrap
from typing import Any

from confide._helpers import as_html, clean
from confide._version import __version__
from confide.core import Plan, Release
from confide.core.codec import plain
from confide.core.events import BudgetItem, OpaqueRelease, leaves
from confide.core.exact import canonical_json, fraction_to_text, pack
from confide.core.release import names_of
from confide.core.units.privacy_unit import RULE, WHOLE, unit_flags, unit_words
from confide.engine import consistent, verify
from confide.errors import ConfideError, FileError, ReleaseError
from confide.guarantees import Guarantee, guarantee_from_dict
from confide.guarantees.conversion import bare_words
from confide.ledger import Ledger
from confide.registry import get
from confide.results.base import stated
from confide.results.pages.content import relation_words

__all__ = ["FORMAT", "PrivacyStatement", "privacy_statement", "schema_text"]

#: Of the record: a newer minor adds entries, a newer major changes them.
FORMAT = "1.0"

_DELTAS = (1e-5, 1e-6, 1e-9)
_FALSE_ALARMS = (0.01, 0.05, 0.1)
_LEVELS = {"GDP": "mu", "ZCDP": "rho", "PureDP": "epsilon"}
# Columns of a line for people, and of its head.
_WIDTH, _HEAD = 110, 11
_SIMULATED = "the noise came from a seed: anyone who has it takes the noise off, and nobody is protected"


@dataclass(frozen=True)
class PrivacyStatement:
    """The privacy statement of a release; made by `confide.privacy_statement`.

    Parameters
    ----------
    facts : mapping
        The facts of the statement, by name.
    """

    facts: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Give the statement in types of strict JSON.

        Returns
        -------
        dict
            A copy.
        """
        found: dict[str, Any] = json.loads(self.to_json())
        return found

    def to_json(self) -> str:
        """Give the statement as JSON, one entry a line; no time, place or machine
        is in it.

        Returns
        -------
        str
            The JSON text.
        """
        return json.dumps(self.facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: str | Path) -> Path:
        """Write `to_json` to a file.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Path
            Its path.

        Raises
        ------
        PlanError
            The file cannot be written.
        """
        target = Path(path)
        try:
            target.write_text(self.to_json(), encoding="utf-8", newline="")
        except OSError as error:
            raise FileError(
                f"the record cannot be written to {str(target)!r}: {error.strerror}",
                "give a file in a folder that exists",
            ) from None
        return target

    def summary(self) -> str:
        """Give the statement as text.

        Returns
        -------
        str
            Facts of the whole, then each analysis with its noise, the ledger
            and the file.
        """
        return "\n".join(_words(self.facts))

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return as_html(self.summary())


def privacy_statement(release: Release, ledger: Ledger | None = None) -> PrivacyStatement:
    """Make the privacy statement of a release, for output checkers.

    It names what is published, who is protected, under which guarantee, by
    which method. No estimate and no noisy number is in it.

    Parameters
    ----------
    release : Release
        From `confide.release` or `Release.load`.
    ledger : Ledger, optional
        The ledger that was charged. The statement then has its entry and tip
        hash, and whether both agree.

    Returns
    -------
    PrivacyStatement
        The statement; prints as text.

    Raises
    ------
    ReleaseError
        The release's own budget items do not pay for its guarantees, so nothing
        is certified.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1)}, dataset="survey")
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> release = cf.release(cf.tables.Means("x", inference="population"), data, cf.GDP(1.0), ledger=None)
    >>> statement = cf.privacy_statement(release).to_dict()
    >>> statement["guarantee"]["stated"][0]["text"], statement["noise"][0]["law"], statement["ledger"]
    ('GDP(mu=1, add-remove)', 'grid_gaussian', None)
    """
    if not consistent(release):
        raise ReleaseError(
            "the release does not agree with its own plan, and no record is made of it", "ask for the original file"
        )
    plan = release.plan
    facts = {
        "confide": "disclosure",
        "format": FORMAT,
        "software": f"confide {__version__}",
        "release_sha256": release.sha256,
        "plan_sha256": plan.sha256,
        "status": release.status,
        "simulated": release.simulated,
        "what": _what(plan),
        "declared": _ordered(plan.schema),
        "unit": _unit(plan, release.charged),
        "guarantee": _guarantee(plan, release),
        "method": _method(plan),
        "noise": [_noise(leaf, release) for leaf in leaves(plan.event)],
        "beside": {
            "passes": plan.passes,
            "number_of_records": plan.n,
            "constants": _ordered(pack(plan.constants)),
            "public_inputs": _ordered(plan.public_inputs),
            "computed_between_rounds": {
                name: list(map(int, value.shape)) for name, value in sorted(release.public.items())
            },
            "artifacts": _ordered(release.artifacts),
        },
        "warnings": [*([_SIMULATED] if release.simulated else []), *plan.warnings, *unit_flags(plan.schema)],
        "analyses": {name: _question(name, child, release) for name, child in plan.children.items()},
        "ledger": None if ledger is None else _ledger(release, ledger),
    }
    return PrivacyStatement(facts)


def schema_text() -> str:
    """The JSON Schema (draft 2020-12) of the statement, as text."""
    return files("confide.disclosures").joinpath("schema.json").read_text(encoding="utf-8")


# sections -------------------------------------------------------------------------------------------------------------


def _what(plan: Plan) -> dict[str, Any]:
    return {
        "estimand": plan.target,
        "intervals_for": plan.intervals_for,
        "subgroup": plan.where,
        "dataset": plan.schema.get("dataset"),
    }


def _ordered(value: Any) -> Any:
    """Entries in the order of a file, so that a release and a copy read from its file give the same statement."""
    return json.loads(canonical_json(value))


def _unit(plan: Plan, guarantee: Guarantee) -> dict[str, Any]:
    own = plan.schema["unit"]
    return {
        "protected": guarantee.unit,
        "enforced": isinstance(own, Mapping),
        "rows_per_unit": plan.schema["rows_per_unit"],
        "words": unit_words(plan.schema, plan.constants.get(RULE), whole=WHOLE in plan.constants),
        "relation": str(guarantee.relation),
        "relation_words": relation_words(guarantee),
        "trust": guarantee.trust,
    }


def _guarantee(plan: Plan, release: Release) -> dict[str, Any]:
    native = release.charged
    gaussian, concentrated = _converted(native, "to_gdp"), _converted(native, "to_zcdp")
    at = {delta: _converted(native, "to_approx", delta=delta) for delta in _DELTAS}
    return {
        "requested": plain(stated(plan.requested)),
        "stated": [plain(stated(one)) for one in release.guarantees],
        "assumptions": list(native.assumptions),
        "follows": {
            "zcdp_rho": None if concentrated is None else concentrated.rho,
            "gdp": None if gaussian is None else {"mu": gaussian.mu, "delta": gaussian.delta},
            "epsilon_at_delta": {f"{delta:g}": None if one is None else one.epsilon for delta, one in at.items()},
        },
        "detection_at_false_alarm": {f"{rate:g}": native.detection_limit(rate) for rate in _FALSE_ALARMS},
        "words": native.describe(),
    }


def _converted(guarantee: Guarantee, verb: str, **given: float) -> Any:
    """Another statement that follows by a proved conversion; None where none is proved, or it says nothing."""
    try:
        return getattr(guarantee, verb)(**given)
    except ConfideError:
        return None


def _method(plan: Plan) -> dict[str, Any]:
    own = plan.method
    try:
        kind = get(own.name)
    except ConfideError:  # of a package that is not installed here
        kind = None
    return {
        "name": own.name,
        "version": own.version,
        "parameters": _ordered(pack(own.parameters)),
        "family": None if kind is None else kind.family,
        "source": None if kind is None else kind.source,
    }


def _noise(leaf: BudgetItem | OpaqueRelease, release: Release) -> dict[str, Any]:
    drawn = leaf.name in release.statistics
    if isinstance(leaf, OpaqueRelease):
        by = None if leaf.hiding is None else _noise(leaf.hiding, release)
        stands = {"guarantee": plain(stated(leaf.guarantee)), "proof": str(leaf.proof), "hidden_by": by}
        return {"name": leaf.name, "law": "opaque", "drawn": drawn, **stands}
    cost = leaf.exact_cost
    return {
        "name": leaf.name,
        "law": leaf.law,
        "drawn": drawn,
        "numbers": prod(leaf.shape),
        "shape": list(leaf.shape),
        "norm": leaf.norm,
        "sensitivity": fraction_to_text(leaf.sensitivity),
        "scale": fraction_to_text(leaf.scale),
        "step": fraction_to_text(leaf.step),
        "noise_sd": leaf.noise_sd,
        "record_map": leaf.map,
        "cost": {
            "type": cost.kind.__name__,
            "amount": fraction_to_text(cost.amount),
            "delta": fraction_to_text(cost.delta),
        },
    }


def _question(name: str, child: Plan, release: Release) -> dict[str, Any]:
    """One analysis of a publication; its noise is among that of the whole, under its name."""
    return {
        "status": release.statuses[name],
        "what": _what(child),
        "method": _method(child),
        "guarantee": plain(stated(child.guarantee)),
        "warnings": list(child.warnings),
    }


def _ledger(release: Release, ledger: Ledger) -> dict[str, Any]:
    receipt, found = ledger.find(release.sha256), verify(release, ledger)
    entry = None
    if receipt is not None:
        entry = {
            "receipt": receipt.seq,
            "charge": receipt.charge_seq,
            "charged": plain(stated(receipt.guarantee)),
            "tip": receipt.tip,
            "software": f"confide {receipt.version}",
        }
    return {
        "dataset": ledger.dataset,
        "agrees": found.ok,
        "checks": list(found.lines),
        "entry": entry,
        "tip": ledger.tip,
    }


# for people -----------------------------------------------------------------------------------------------------------


def _words(facts: Mapping[str, Any]) -> list[str]:
    """The statement as text: the whole, each analysis with its noise, the ledger, the file."""
    unit, own, questions = facts["unit"], facts["guarantee"], facts["analyses"]
    epsilons = own["follows"]["epsilon_at_delta"].items()
    noise = {one["name"]: one for one in facts["noise"]}
    # ranges that analyses share are the publication's own
    whole = {name: one for name, one in noise.items() if name.partition("/")[0] not in questions}
    lines = [
        *_entries(_about(facts["what"], facts["method"]), ""),
        *_entries(
            [
                ("Dataset", facts["what"]["dataset"] or "not named"),
                ("Unit", unit["words"]),
                ("Relation", f"{unit['relation'].replace('-', '/')}: {unit['relation_words']}"),
                ("Guarantee", "; ".join(map(_told, own["stated"]))),
                ("Means", own["words"]),
                (
                    "Epsilon",
                    ", ".join(f"{_up(one):g} at delta {delta}" for delta, one in epsilons if one is not None)
                    or "none follows",
                ),
                *(("Warning", one) for one in facts["warnings"]),
            ],
            "",
        ),
        *(_noise_lines(whole, "") if whole else []),
    ]
    for k, (name, one) in enumerate(questions.items(), 1):
        lines += ["", clean(f"Analysis {k} of {len(questions)}: {name} ({one['status']})")]
        charged = [("Charged", _told(one["guarantee"])), *(("Warning", text) for text in one["warnings"])]
        lines += _entries([*_about(one["what"], one["method"]), *charged], "  ")
        lines += _noise_lines(names_of(name, noise), "  ")
    end = [
        (
            "SD",
            f"of the noise of one number; 1 is the most by which one {unit['protected']} changes the numbers of its line together",
        ),
        ("Ledger", _ledger_words(facts["ledger"])),
        ("Release", f"{facts['release_sha256']} ({facts['status']})"),
        ("Plan", facts["plan_sha256"]),
    ]
    return [*lines, "", *_entries(end, "")]


def _told(guarantee: Mapping[str, Any]) -> str:
    """A guarantee of the statement, as people read it."""
    own = {name: value for name, value in guarantee.items() if name not in ("text", "numbers")}
    return bare_words(guarantee_from_dict(own))


def _about(what: Mapping[str, Any], method: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The estimand, the records and the method."""
    return [
        ("Estimated", what["estimand"]),
        ("Intervals", what["intervals_for"]),
        *([("Subgroup", what["subgroup"])] if what["subgroup"] else []),
        ("Method", f"{method['name']} {method['version']}" + (f" ({method['source']})" if method["source"] else "")),
    ]


def _entries(said: list[tuple[str, str]], indent: str) -> list[str]:
    """A line for each fact, broken where it is long, its head to the left."""
    lines = []
    for head, text in said:
        room = " " * (len(indent) + _HEAD)
        lines += wrap(clean(str(text)), _WIDTH, initial_indent=f"{indent}{head:<{_HEAD}}", subsequent_indent=room)
    return lines


def _noise_lines(noise: Mapping[str, Any], indent: str) -> list[str]:
    """The draws as a table; those of branches that were not taken by name alone."""
    drawn = {clean(name): _noise_row(one) for name, one in noise.items() if one["drawn"]}
    wide = max(map(len, drawn), default=0)
    room = " " * (len(indent) + _HEAD)
    rows = [f"{room}{name:<{wide}}  {row}" for name, row in drawn.items()]
    head = f"{'':<{wide}}  {'numbers':>7}  {'SD':>8}  {'cost':<14}  law"
    proofs = [f"{name}: {one['proof']}" for name, one in noise.items() if one["drawn"] and one["law"] == "opaque"]
    spared = [name for name, one in noise.items() if not one["drawn"]]
    return [
        f"{indent}{'Noise':<{_HEAD}}{head}",
        *rows,
        *_entries([("", text) for text in proofs], indent),
        *(_entries([("", f"planned and not drawn: {', '.join(spared)}")], indent) if spared else []),
    ]


def _noise_row(one: Mapping[str, Any]) -> str:
    if one["law"] == "opaque":
        by = one["hidden_by"]
        size = "" if by is None or by["noise_sd"] is None else f"{_in_sensitivities(by):>8.4g}"
        return f"{'':>7}  {size:>8}  {_told(one['guarantee'])}"
    sd = "choice" if one["noise_sd"] is None else f"{_in_sensitivities(one):.4g}"
    cost, kind = one["cost"], one["cost"]["type"]
    amount, delta = float(Fraction(cost["amount"])), float(Fraction(cost["delta"]))
    level = sqrt(amount) if kind == "GDP" else amount
    paid = f"{_LEVELS[kind]} {_up(level):g}" + (f", delta {_up(delta):g}" if delta else "")
    return f"{one['numbers']:>7}  {sd:>8}  {paid:<14}  {one['law'].replace('_', ' ')}"


def _in_sensitivities(one: Mapping[str, Any]) -> float:
    """The noise of one number over the sensitivity of all, both in the statistic's own integers."""
    step, sensitivity = Fraction(one["step"]), Fraction(one["sensitivity"])
    return float(one["noise_sd"]) / float(step * sensitivity)


def _up(level: float) -> float:
    """Four digits, rounded up: a limit is never understated."""
    return float(Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(level))


def _ledger_words(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "none was given; confide statement RELEASE --ledger LEDGER"
    entry = found["entry"]
    paid = (
        "no receipt of this release" if entry is None else f"entry {entry['charge']}, charged {_told(entry['charged'])}"
    )
    return f"{found['dataset']}: {paid}; {'agrees' if found['agrees'] else 'DOES NOT AGREE'}; tip hash {found['tip']}"
