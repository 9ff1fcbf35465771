"""The protocols as pure functions: ``step(state, request) -> (state, verdict)``.

Every function here is total, holds integers and booleans only, reads no clock, raises nothing and keeps no state.
The shells beside this package run these functions under a lock; a solver reads the very same source.
"""
