"""`--tune`: edits that make a migrated script faster on NPUs and may change what it computes; each one by its name.

`table` knows the names, `codemod` runs those that were asked for, and each tuning has a module of its own.
"""
