"""Protocols as papers and READMEs state them, in the same form as the runtime's own, and what the solver finds."""
