"""How far the scores of persons and of PSUs count in a meat: from three standard deviations on, as far as the noise allows.

A person's score is cut at s, the sum of a PSU at G; one person moves the meat by about 2 s G (4 s G centred in strata), so that its noise
is that over mu of the meat. What it measures in one of p cells is about

    (n/p) E omega^2 (1 + (S - 1) icc) sd^2,

as weights are about the same within a PSU. G is made for PSUs of the weights that sums are made of, E omega^2/E omega, not of the mean one;
persons are cut at 3 sds times the root of that, as few are near omega = 1 where weights are uneven. Both grow from there as long as that
ratio stays below `FINE`, up to a length that cuts nobody in PSUs of the stated sizes. From there G may grow alone, up to `wide`, for sums
of PSUs that are more alike than declared, or whose means are skewed. Both the noise and what noise hides of the sums beyond G grow with G,
so that a long cut is no safer than a short one whose ramps (`beyond`) are told well. The centred form is taken where its ratio at the
least limits is below `CENTRED`. All from public facts and earlier noisy numbers; source: derived here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, sqrt

from confide.schema import SurveyDesign

__all__ = ["IF_EVEN", "LEAST", "OUTCOME", "WIDE", "Limits", "Sampled", "hidden_part", "too_few"]

#: Standard deviations of persons and of PSUs at which cuts begin.
LEAST = 3.0
#: Noise over what a meat measures: where longer limits stop, up to which strata are centred, and above which a plan warns.
FINE, CENTRED, _WARNED = 0.05, 0.2, 0.5
#: The same up to which G grows alone for tables. Where PSUs are less alike than declared the noise is more of what is measured: at .1, and
#: half of the declared variance, 50 degrees of freedom are left; at .25 there would be eight.
WIDE = 0.1

_MULTIPLES = (3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 16.0, 24.0, 32.0, 64.0, 128.0)


@dataclass(frozen=True)
class Sampled:
    """What is known of the sample: persons, first and second moments of omega, cells of the marginal, the design."""

    persons: float
    first: float
    second: float
    cells: int
    design: SurveyDesign

    @property
    def usual(self) -> float:
        """The size of a PSU: 1 where persons are independent."""
        return 1.0 if self.design.psu is None else float(self.design.size or 1.0)

    @property
    def measured(self) -> float:
        """What a diagonal entry of the meat is about, in squared sds of a person's score at omega = 1."""
        size = max(self.usual / self.cells, 1.0)
        return max(self.persons / self.cells * self.second * self._within(size) / size, 1e-9)

    def _within(self, size: float) -> float:
        """The variance of the sum of a PSU of so many persons of omega = 1."""
        return size * (1 + (size - 1) * self.design.icc)

    @property
    def _heavy(self) -> float:
        """E omega^2/E omega: the weight of those that sums are made of, at least the root of E omega^2."""
        return min(self.second / self.first, 1.0)

    def spread(self, shift: float) -> float:
        """The sd of the sum of the largest PSUs, and what a mean score of `shift` sds adds to three of them."""
        if self.design.psu is None:
            return 1.0
        return self._heavy * (sqrt(self._within(self.design.most)) + self.design.most * shift / LEAST)


@dataclass(frozen=True)
class Limits:
    """s and G in sds of a person's score at omega = 1; whole: nobody is cut; centred: the form of the meat."""

    person: float
    psu: float
    centred: bool
    whole: bool

    @classmethod
    def of(
        cls,
        sampled: Sampled,
        mu: float,
        *,
        longest: float,
        shift: float = 0.0,
        centred: bool = False,
        fixed: bool = False,
        first: float = LEAST,
        wide: float = 0.0,
    ) -> Limits:
        """mu: of the meat, over what one person moves it by; longest: of a person's score, in sds; centred: whether it may be; fixed: they
        are short, so that none is cut; first: where cuts of persons of the whole weight begin; wide: the noise up to which G grows alone.
        """
        design, spread = sampled.design, sampled.spread(shift)
        # with uneven weights few persons are near omega = 1
        least = sqrt(min(sampled.second / sampled.first, 1.0))
        persons = [longest] if fixed else [min(one * least * first / LEAST, longest) for one in _MULTIPLES]
        largest = longest * design.most if design.psu is not None else longest

        def made(k: int, form: bool) -> Limits:
            person = persons[min(k, len(persons) - 1)]
            if design.psu is None:
                return cls(person, person, False, person >= longest)
            every = k >= len(_MULTIPLES) - 1 and person >= longest
            psu = max(largest if every else min(_MULTIPLES[k] * spread, largest), person)
            return cls(person, psu, form, person >= longest)

        def noise(own: Limits) -> float:
            return own.moved(design.psu is None) / mu / sampled.measured

        form = centred and noise(made(0, True)) <= CENTRED
        chosen = made(0, form)
        for k in range(1, len(_MULTIPLES)):
            longer = made(k, form)
            if noise(longer) > FINE:
                break
            chosen = longer
        if design.psu is not None:
            chosen = replace(chosen, psu=min(chosen.psu * max(wide / noise(chosen), 1.0), max(largest, chosen.psu)))
        return chosen

    def moved(self, alone: bool) -> float:
        """How far one person moves the meat; alone: without PSUs."""
        return self.person**2 if alone else (4 if self.centred else 2) * self.person * self.psu


def hidden_part(design: SurveyDesign, mu: float) -> float:
    """The noise of a meat at its least limits as a part of what it measures, times sum omega. mu: of the meat.

    One person moves it by 9 E omega^2/E omega squared sds, and it measures sum omega^2 of them; with PSUs twice the cut of their sums
    over what these measure.
    """
    size = 1.0 if design.psu is None else float(design.size or 1.0)
    wide = 1.0 if design.psu is None else 2 * sqrt(size / (1 + (size - 1) * design.icc))
    return LEAST**2 * wide / mu


# Of lines of an outcome scores count as far as any goes, and their noise is so many times that of three sds, without columns of numbers
# and with them: measured at even outcomes, normal features and persons alike by .2 (tests/methods/regression/test_survey_logistic.py).
OUTCOME = (2.0, 5.0)
IF_EVEN = "where the outcome is even, and more where it is rare"


def too_few(
    design: SurveyDesign, mu: float, n: int | None = None, cells: int = 1, outcome: float | None = None
) -> tuple[str, ...]:
    """The warning of a plan whose meat is mostly noise, where the number of PSUs is public; where it is not, the note of one that was asked
    for n persons. mu: of the meat; cells: of the table, as large as one another; outcome: of a line of an outcome, of `OUTCOME`.

    >>> from confide.schema import SurveyDesign
    >>> too_few(SurveyDesign(psu="v", size=10, count=20), 0.3)[0][:38]
    'too few PSUs for this budget: the nois'
    >>> too_few(SurveyDesign(psu="v", size=10), 0.3, 200)[0][:38]
    'too few PSUs for this budget at n = 20'
    """
    count, told = design.psu_count, ""
    if n:
        # of a public number of PSUs there is the warning
        count = None if count else max(round(n / float(design.size or 1.0)), 2)
        told = f" at n = {n:,}"
    if design.psu is None or count is None:
        return ()
    sampled = Sampled(count * float(design.size or 1.0), 1.0, 1.0, cells, design)
    each = f" in each of {cells:,} cells" if cells > 1 else ""
    share = (outcome or 1.0) * 2 * LEAST**2 * sampled.spread(0.0) / mu / sampled.measured
    if share <= _WARNED:
        return ()
    return (
        f"too few PSUs for this budget{told}: the noise of their sums is about {share:.2g} times what they measure{each}, with equal "
        f"weights, so that intervals are wide; about {ceil(share / _WARNED * count):,} PSUs of {design.psu}, or "
        f"{ceil(10 * share / _WARNED) / 10:.1f} times the mu, would do{f' {IF_EVEN}' if outcome else ''}",
    )
