"""Evidence in, pages out; a report reads records and computes no verdict."""
