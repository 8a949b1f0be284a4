"""Benchmarks, acceptance checks and long statistical runs. `confide lab bench NAME ...` writes JSON to out/bench."""
