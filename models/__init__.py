"""Proofs: the pure cores of the runtime read as transition relations."""
