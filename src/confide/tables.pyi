"""`cf.tables`: counts, shares, means, totals and quantiles over any crossing, in one call each.

A lower-case name plans, releases and infers in one call. A class is the method, to plan, release and infer separately.
"""

from confide.ask.one_call import OneCall, one_call
from confide.methods.quantiles.method import Quantiles as Quantiles
from confide.methods.quantiles.results import QuantileTable
from confide.methods.tables.counts import Counts as Counts, CountTable, Shares as Shares, ShareTable
from confide.methods.tables.means import Means as Means, MeanTable, Ratios as Ratios, Totals as Totals, TotalTable
from confide.methods.tables.persons import (
    DistinctCounts as DistinctCounts,
    DistinctCountTable,
    DistinctShares as DistinctShares,
    DistinctShareTable,
    RowsPerUnit as RowsPerUnit,
    RowsPerUnitTable,
)
from confide.methods.tables.survey.results import SurveyTable
from confide.methods.tables.table_one.method import TableOne as TableOne
from confide.methods.tables.table_one.results import TableOneResult

counts: OneCall[CountTable] = one_call(Counts, "cf.tables.counts")
means: OneCall[MeanTable] = one_call(Means, "cf.tables.means")
distinct_counts: OneCall[DistinctCountTable] = one_call(DistinctCounts, "cf.tables.distinct_counts")
distinct_shares: OneCall[DistinctShareTable] = one_call(DistinctShares, "cf.tables.distinct_shares")
quantiles: OneCall[QuantileTable] = one_call(Quantiles, "cf.tables.quantiles")
ratios: OneCall[SurveyTable] = one_call(Ratios, "cf.tables.ratios")
rows_per_unit_table: OneCall[RowsPerUnitTable] = one_call(RowsPerUnit, "cf.tables.rows_per_unit_table", 0)
shares: OneCall[ShareTable] = one_call(Shares, "cf.tables.shares")
table_one: OneCall[TableOneResult] = one_call(TableOne, "cf.tables.table_one")
totals: OneCall[TotalTable] = one_call(Totals, "cf.tables.totals")
