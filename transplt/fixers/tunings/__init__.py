"""`--tune`: edits that make a migrated script faster on NPUs and may change what it computes; each one by its name.

Each tuning is a fixer in a module of its own; `table` lists them. They look after everything else was planned, in the
order of their ranks: 100 optimizers, 200 switches of the whole program, 300 data and processes, 400 operators, 500
types of numbers, 600 what only measures.
"""
