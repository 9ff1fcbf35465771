"""What the runtime costs: overhead as a ratio to a bare lock in the same run, and memory that stays flat.

Run ``tox -e bench``, or ``pytest -o python_files='bench_*.py' src/failstop/benchmarks``.
"""
