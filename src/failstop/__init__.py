"""failstop: agent limits you can prove."""
