"""What may deny a single call, or bound many runs: budget, steps, breaker, retries, quota, and their pipeline."""
