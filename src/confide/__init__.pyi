from confide import (
    classification as classification,
    curves as curves,
    guarantees as guarantees,
    local as local,
    noise as noise,
    ptr as ptr,
    reduction as reduction,
    regression as regression,
    synthesis as synthesis,
    tables as tables,
    voting as voting,
)
from confide._version import __version__ as __version__
from confide.advice import advise as advise
from confide.ask import intervals as intervals, tests as tests
from confide.ask.bounds import find_bounds as find_bounds
from confide.ask.one_call import OneCall, one_call
from confide.ask.synthesis import synthesize as synthesize
from confide.core import Plan as Plan, Release as Release
from confide.disclosures import privacy_statement as privacy_statement
from confide.engine import (
    infer as infer,
    margins_by_cost as margins_by_cost,
    plan as plan,
    release as release,
    verify as verify,
)
from confide.errors import (
    BudgetExceeded as BudgetExceeded,
    ConfideError as ConfideError,
    NoResult as NoResult,
)
from confide.guarantees import (
    GDP as GDP,
    ZCDP as ZCDP,
    ApproxDP as ApproxDP,
    PureDP as PureDP,
)
from confide.ledger import Ledger as Ledger
from confide.methods.publication import Publication as Publication
from confide.registry import list_methods as list_methods, register as register
from confide.regression import (
    LeastSquares,
    LinearEstimates,
    Logistic,
    LogisticEstimates,
    Poisson,
    PoissonEstimates,
    Within,
    WithinEstimates,
)
from confide.schema import (
    Categorical as Categorical,
    Clusters as Clusters,
    Date as Date,
    Integer as Integer,
    Numeric as Numeric,
    Schema as Schema,
    SurveyDesign as SurveyDesign,
    Typical as Typical,
    Unit as Unit,
)
from confide.selection import select as select
from confide.sources import read as read, sql as sql
from confide.sources.preflight import preflight as preflight

linear_regression: OneCall[LinearEstimates] = one_call(LeastSquares, "cf.linear_regression")
logistic_regression: OneCall[LogisticEstimates] = one_call(Logistic, "cf.logistic_regression")
poisson_regression: OneCall[PoissonEstimates] = one_call(Poisson, "cf.poisson_regression")
within_regression: OneCall[WithinEstimates] = one_call(Within, "cf.within_regression")
