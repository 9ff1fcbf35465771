"""The objects under test: one protocol a module, with the moves that can be made on it."""
