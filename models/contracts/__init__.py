"""Contracts of the runtime's pure functions, which CrossHair tries to break by running the functions themselves.

A contract is a function of plain arguments, the state among them: its name is the claim, ``pre:`` says for what it is
claimed, the body calls the real function and returns whether the claim held. Calling one with the arguments of a
counterexample shows that counterexample again.

Docstring contracts (PEP 316) and not asserts: CrossHair calls an assert whose precondition nothing meets "confirmed",
and says of a ``pre:`` that nothing met it. Only the precondition stands in text; the claim is code that is typed and
linted. The state is an argument and never an object that CrossHair would have to build by one call of its constructor.

Confirmed means: for every value of these types, on every path, as CrossHair models Python. Nothing here says anything
about threads. A contract that CrossHair could not confirm is inconclusive and shows nothing more than that a search
ended without a counterexample.

Each module takes its cores as modules by name, so a test can put one with a planted bug in the place of the real one.
Nothing here needs CrossHair to be installed; `failstop.models.crosshair_run` does.
"""
