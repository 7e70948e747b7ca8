"""Rewrites of single files that every migration makes, one theme a module: each states a fixer and yields edits."""
