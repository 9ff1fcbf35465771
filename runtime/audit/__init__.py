"""The log of a run: written before the next step starts, read back, replayed, and judged by the pure cores."""
