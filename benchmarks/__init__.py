"""Overhead of the runtime, measured as a ratio to a bare lock in the same run."""
