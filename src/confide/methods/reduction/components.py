"""Principal components of bounded columns: directions, explained variances with intervals, and correlations, from one release.

Guarantee: mu-GDP, add-remove or substitute, two statistics. Nine tenths of mu^2: the noisy Gram matrix of joint moments, sensitivity 1 +
p in the Frobenius norm (`aggregates.moments.joint_moments`), exact Gaussian noise (Analyze Gauss with the exact curve in place of sqrt(2
log(1.25/delta)), and half the variance off the diagonal). One tenth: at the noisy components, sums of squared influences on each
eigenvalue, each cut at a public cap (`InfluenceRows`, k numbers in [0, 1] for a record).

Components are eigenvectors of the noisy correlation matrix (scale="correlation") or of the covariance matrix in the units of the data.
Explained variances are its eigenvalues less what noise adds to them at second order, sum over j of v_ij/(l_i - l_j), v_ij the noise
variance of a_i'E a_j.

Interval of an eigenvalue: all l within the normal quantile times the standard error that they would have; sampling variance in proportion
to l^2, sum I^2/N^2 at the estimate, I its influence by record, plus one standard deviation of the noise of that sum; noise by the delta
method. It covers the eigenvalue of the population's matrix where components are apart; where two are closer than noise and sampling can
tell, the flag "close" says that their directions are not determined. Sources: Dwork, Talwar, Thakurta, Zhang 2014; Dong, Roth, Su 2022;
influence of an eigenvalue: Critchley 1985.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from confide.aggregates.cells.free_moments import practice_places
from confide.aggregates.lines.rows import BITS
from confide.aggregates.moments.joint_moments import InfluenceRows, JointMomentRows, JointMoments
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_whole
from confide.methods.reduction.basis import Basis
from confide.methods.reduction.columns import OfColumns, expected, joint_moments, measures_of
from confide.methods.reduction.spectrum import Spectrum
from confide.protocol import Allowance, Gram, Meter, Plan, Question, Release, Source, Together, Total
from confide.schema import Practice

__all__ = ["PCA"]


SCALES = ("correlation", "covariance")
_INFLUENCE = Fraction(1, 10)


@dataclass(frozen=True)
class PCA(OfColumns):
    """Principal components. columns: names or derived terms, a list or "a + b + c"; components: how many, all when left out; scale:
    "correlation" (columns standardised) or "covariance" (in the units of the data); term_bounds: bounds of derived terms.

    >>> import confide as cf
    >>> schema = cf.Schema({name: cf.Numeric(0, 10) for name in ("x", "y", "z")})
    >>> data = cf.read(schema.sample(5_000, seed=1), schema)
    >>> found = cf.infer(cf.release(PCA("x + y + z", components=2), data, cf.GDP(1.0), ledger=None))
    >>> found.names, found.loadings().shape
    (('PC1', 'PC2'), (3, 2))
    """

    columns: tuple[str, ...]
    components: int | None = None
    scale: str = "correlation"
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "pca"
    source: ClassVar[str] = "Analyze Gauss (Dwork, Talwar, Thakurta, Zhang 2014) with exact Gaussian noise"
    intervals: ClassVar[str] = (
        "explained variances of the population's columns moved into their bounds; sampling and privacy noise"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale not in SCALES:
            raise PlanError(f"scale must be one of {', '.join(SCALES)}, got {self.scale!r}; correlation is the default")
        if self.components is not None and not is_whole(self.components, 1, len(self.columns)):
            raise PlanError(
                f"components must be a whole number from 1 to {len(self.columns)}, the number of columns, got {self.components!r}"
            )

    @property
    def k(self) -> int:
        """How many components."""
        return len(self.columns) if self.components is None else int(self.components)

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Joint moments, then influences at the noisy components; a note says from how many records on columns are answered."""
        rows, allowance = self.about(schema), Allowance.of(privacy, self, schema)
        moments, influence = Gram(rows, entry_bits=BITS), Total(InfluenceRows(rows.measures, self.k), nonnegative=True)
        event = Together(
            (allowance.spend("moments", moments, 1 - _INFLUENCE), allowance.spend("influences", influence, _INFLUENCE))
        )
        names = ", ".join(measure.name for measure in rows.measures)
        made = Plan.of(
            self,
            schema,
            allowance,
            event,
            {"moments": moments, "influences": influence},
            n=n,
            passes=2,
            target=f"principal components of {names} by their {self.scale} matrix",
            covers=self.intervals,
        )
        return replace(made, notes=(*made.notes, expected(made, rows, schema, n)))

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Moments; then influences at what was drawn."""
        moments, influence = plan.statistic("moments"), plan.statistic("influences")
        assert isinstance(moments, Gram) and isinstance(moments.map, JointMomentRows)
        assert isinstance(influence, Total) and isinstance(influence.map, InfluenceRows)
        noisy = meter.draw("moments", source.aggregate(moments)[0])
        own = self._spectrum(moments.map, joint_moments(moments.map, noisy))
        sd = plan.spend("influences").noise_sd
        assert sd is not None
        caps = own.caps(sd / influence.map.steps)
        rows = influence.map.at(own.own.means, own.directions, own.squares, own.levels, caps)
        meter.draw("influences", source.aggregate(Total(rows, nonnegative=True))[0])
        return {"caps": caps}

    def _spectrum(self, rows: Any, own: JointMoments) -> Spectrum:
        half = np.array([measure.half for measure in rows.measures])
        return Spectrum.of(own, self.k, self.scale == "correlation", half)

    def table(self, release: Release, about: JointMomentRows, question: Question) -> Basis:
        own, noisy = self._spectrum(about, joint_moments(about, release["moments"])), release["influences"]
        unit = InfluenceRows(about.measures, self.k).steps
        caps = np.asarray(release.public["caps"], dtype=np.float64)
        sums, sd = noisy.decode() / unit * caps, np.sqrt(noisy.variance) / unit * caps
        return Basis.read(release, own, about.measures, sums, sd, scale=self.scale)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The largest eigenvalues of practice records."""
        practice = Practice.checked(frame)
        measures = measures_of(self.columns, practice.schema, self.term_bounds)
        places = practice_places(measures, practice)
        values = places * np.array([measure.half for measure in measures])
        whole = np.corrcoef(values.T) if self.scale == "correlation" else np.cov(values.T, bias=True)
        found = np.linalg.eigvalsh(whole)[::-1][: self.k]
        return {f"PC{j + 1}": float(value) for j, value in enumerate(found)}
