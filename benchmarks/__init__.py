"""Benchmarks, acceptance checks and long statistical runs. `python -m benchmarks [NAME ...]` writes JSON to out/bench."""
