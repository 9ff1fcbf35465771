"""Small wrong variants of the runtime, each named by its mistake, which the layers must catch."""
