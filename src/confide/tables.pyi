"""`cf.tables`: what an office asks first, in one call each: counts, shares, means, totals and quantiles over any crossing.

A lower-case name is the call (plan, release, infer), a class the method behind it, for those who plan, release and infer apart.
"""

from confide.ask.one_call import OneCall, one_call
from confide.methods.quantiles.method import Quantiles as Quantiles
from confide.methods.quantiles.results import QuantileTable
from confide.methods.tables.counts import Counts as Counts, CountTable, Shares as Shares, ShareTable
from confide.methods.tables.means import Means as Means, MeanTable, Ratios as Ratios, Totals as Totals, TotalTable
from confide.methods.tables.persons import (
    PersonCounts as PersonCounts,
    PersonCountTable,
    PersonShares as PersonShares,
    PersonShareTable,
)
from confide.methods.tables.survey.results import SurveyTable
from confide.methods.tables.table_one.method import TableOne as TableOne
from confide.methods.tables.table_one.results import TableOneResult

counts: OneCall[CountTable] = one_call(Counts, "cf.tables.counts")
means: OneCall[MeanTable] = one_call(Means, "cf.tables.means")
person_counts: OneCall[PersonCountTable] = one_call(PersonCounts, "cf.tables.person_counts")
person_shares: OneCall[PersonShareTable] = one_call(PersonShares, "cf.tables.person_shares")
quantiles: OneCall[QuantileTable] = one_call(Quantiles, "cf.tables.quantiles")
ratios: OneCall[SurveyTable] = one_call(Ratios, "cf.tables.ratios")
shares: OneCall[ShareTable] = one_call(Shares, "cf.tables.shares")
table_one: OneCall[TableOneResult] = one_call(TableOne, "cf.tables.table_one")
totals: OneCall[TotalTable] = one_call(Totals, "cf.tables.totals")
