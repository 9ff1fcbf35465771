"""From proof to peer: a counterexample to what is published becomes a schedule, and is run against the real package."""
