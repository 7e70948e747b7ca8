"""What is read from rules/: rule files, fact tables, pages of diagnostics."""
