"""Protocols as papers and READMEs state them, in the same form as the runtime's own, with what the solver says of them."""
