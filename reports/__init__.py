"""Pictures and pages from evidence records; decides nothing."""
