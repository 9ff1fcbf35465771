"""Every order in which threads can run, as far as it can be searched to the end."""
