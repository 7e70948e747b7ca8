"""Rewrites of single files that every migration makes, one theme a module: each states a fixer and yields edits.

`rename`, `args` and `module` carry the rules that users write; the others are what no table can express.
"""
