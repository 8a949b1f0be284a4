from confide import (
    audit as audit,
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
    testing as testing,
    voting as voting,
)
from confide._version import __version__ as __version__
from confide.advice import advise as advise
from confide.ask import intervals as intervals, tests as tests
from confide.ask.bounds import find_bounds as find_bounds
from confide.ask.intervals import private_block_posterior as private_block_posterior
from confide.ask.one_call import OneCall, one_call
from confide.ask.results_file import write_results as write_results
from confide.ask.synthesis import combine as combine, refit as refit, synthesize as synthesize
from confide.core import Plan as Plan, Release as Release, ResultOptions as ResultOptions
from confide.disclosures import disclosure as disclosure
from confide.engine import infer as infer, plan as plan, precision as precision, release as release, verify as verify
from confide.errors import (
    BudgetExceeded as BudgetExceeded,
    ConfideError as ConfideError,
    LedgerBusy as LedgerBusy,
    NoConversion as NoConversion,
    NoResult as NoResult,
    PlanError as PlanError,
    PrivacyError as PrivacyError,
    ReleaseError as ReleaseError,
    SchemaError as SchemaError,
    SourceError as SourceError,
)
from confide.guarantees import (
    GDP as GDP,
    RDP as RDP,
    ZCDP as ZCDP,
    ApproxDP as ApproxDP,
    PureDP as PureDP,
    TradeOff as TradeOff,
)
from confide.ledger import Ledger as Ledger
from confide.methods.publication import Publication as Publication
from confide.methods.tables.persons import Contributions, ContributionTable
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
from confide.results.comparison import compare as compare
from confide.schema import (
    Categorical as Categorical,
    Clusters as Clusters,
    Design as Design,
    Integer as Integer,
    Numeric as Numeric,
    Provenance as Provenance,
    Schema as Schema,
    SurveyDesign as SurveyDesign,
    Typical as Typical,
    Unit as Unit,
)
from confide.selection import select as select
from confide.sources import read as read, sql as sql

contributions: OneCall[ContributionTable] = one_call(Contributions, "cf.contributions", 0)
linear_regression: OneCall[LinearEstimates] = one_call(LeastSquares, "cf.linear_regression")
logistic_regression: OneCall[LogisticEstimates] = one_call(Logistic, "cf.logistic_regression")
poisson_regression: OneCall[PoissonEstimates] = one_call(Poisson, "cf.poisson_regression")
within_regression: OneCall[WithinEstimates] = one_call(Within, "cf.within_regression")
