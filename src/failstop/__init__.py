"""failstop: agent limits you can prove.

One package over six folders; each may import only what stands above it:

    runtime/     the contained runtime: pure cores, thin shells around them; standard library only
    planners/    scripted misbehaviour, each with the stop it must end in
    models/      the pure cores read as transition relations, and proved
    properties/  targets, the witness world and the driver: planners against runtimes, verdicts as evidence records
    benchmarks/  what the runtime costs, as ratios to a bare lock in the same run
    reports/     evidence records as tables and pages; decides nothing

A check produces evidence, evidence is a record in a file, a report reads records; there is no other way of the data.
"""
