"""`--adapt`: what blocks a port is written, by functions of `transplt/helper` that go into the project.

Each adaptor is a fixer in a module of its own, with a rank below 0: it looks before the migration does. A migration
that does not ask for one lets it look too, where it has a finding that one answers
(rules/support/adaptors.json), and says which one would write it.
"""
