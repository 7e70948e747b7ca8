"""Rewrites that a table cannot say, one theme a module. Each has `plan(work)`, which looks and appends changes."""
