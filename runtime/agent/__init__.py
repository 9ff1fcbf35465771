"""The agent loop: planner, tools with their risk, approval, and the run that ties them to a chain."""
