"""Random programs on one object, each step compared with its reference."""
