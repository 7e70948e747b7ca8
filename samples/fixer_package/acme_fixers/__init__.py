"""Fixers of transplt for the library acme."""
