"""Scripted misbehaviour: one small file a family, each planner with the stop it must end in (see catalogue)."""
