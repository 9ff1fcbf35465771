"""The runtime's own protocols: each specification runs the very cores that run in production."""
