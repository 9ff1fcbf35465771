"""The minimal contained runtime; standard library only."""
