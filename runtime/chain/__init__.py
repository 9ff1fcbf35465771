"""One chain of calls under its limits: the ledger, the boundary that every call passes, and its faces."""
