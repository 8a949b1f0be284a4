"""A private regression table on real records: the 1974 Redbook survey on marriage, 6,366 respondents, one row each.

All items are treated as numeric scales, as in statsmodels' own example. Run it with `make demo`; it writes to out/demo.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import statsmodels.api as sm
import statsmodels.formula.api as smf

import confide as cf

SCHEMA = Path(__file__).with_name("fair.toml")
FORMULA = "rate_marriage ~ age + yrs_married + children + religious + educ + occupation + occupation_husb"
OUT = Path("out/demo")


def records() -> pd.DataFrame:
    """The survey as statsmodels ships it."""
    return sm.datasets.fair.load_pandas().data


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (OUT / name).unlink(missing_ok=True)
    schema = cf.Schema.from_toml(SCHEMA)
    data = cf.read(records(), schema)
    book = cf.Ledger.create(OUT / "ledger.db", dataset="redbook-1974", budget=cf.GDP(1.2))

    title("1. The plan, from public facts alone; nothing is read and nothing is spent")
    method = cf.regression.LeastSquares(FORMULA)
    plan = cf.plan(method, schema, cf.GDP(1.0), n=6_000, ledger=book)
    print(plan)
    (OUT / "plan.json").write_text(plan.to_json())

    title("2. The release, through the gate: charge, noise, receipt")
    release = cf.release(plan, data, ledger=book)
    release.save(OUT / "release.json")
    print(release)

    title("3. The private table, from the published file, beside the table that nobody may see")
    result = cf.infer(cf.Release.load(OUT / "release.json"))
    print(result.summary())
    beside(result)
    print(f"\nreport: {result.report(OUT / 'report.html')}")

    title("4. Anyone can infer again from the file and gets the same table")
    again = cf.infer(cf.Release.load(OUT / "release.json"))
    print("the same to the last digit:", again.summary() == result.summary() == cf.infer(release).summary())

    title("5. What is spent is spent: a second request at 1-GDP does not fit the ledger")
    try:
        cf.release(method, data, privacy=cf.GDP(1.0), ledger=book)
    except cf.BudgetExceeded as refusal:
        print(f"refused before any noise was drawn: {refusal}")
    print(f"\n{book.show()}\n\n{cf.verify(release, book)}")


def beside(result: cf.regression.LinearEstimates) -> None:
    """Print private and non-private coefficients side by side; a real steward would not."""
    ols = smf.ols(FORMULA, records()).fit()
    table = pd.DataFrame(
        {"private": result.params, "se": result.bse, "OLS (not private)": ols.params, "OLS se": ols.bse}
    )
    table["se ratio"] = table["se"] / table["OLS se"]
    print("\n" + table.round(4).to_string())


def title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


if __name__ == "__main__":
    main()
