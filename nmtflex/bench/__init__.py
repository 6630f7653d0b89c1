"""Benchmarks: how long things take, and where the time goes."""
