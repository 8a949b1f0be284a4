"""Long runs that can be interrupted: cells of settings x replications, seeds by coordinates, results in Parquet parts.

>>> import tempfile
>>> def mean_of_noise(at, generator):
...     return {"mean": generator.normal(0.0, at["sd"], at["n"]).mean()}
>>> study = Study("mean-of-noise", {"n": (10, 1000), "sd": (1.0,)}, mean_of_noise, replications=3)
>>> table = run(study, tempfile.mkdtemp(), jobs=1, progress=False)
>>> list(table.columns), len(table)
(['n', 'sd', 'replication', 'mean', 'seconds', 'error'], 6)
>>> bool(cell(study, {"n": 1000, "sd": 1.0}, 2)["mean"] == table["mean"].iloc[5])
True
"""

from confide_lab.runner.run import cell, run
from confide_lab.runner.study import Measure, Study, Value, seed_of, version_of_sources

__all__ = ["Measure", "Study", "Value", "cell", "run", "seed_of", "version_of_sources"]
