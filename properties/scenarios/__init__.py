"""A few short programs at once on one object: the places where a runtime that checks and then acts goes wrong."""
