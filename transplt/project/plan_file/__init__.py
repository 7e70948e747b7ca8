"""A plan: the decisions of a port as a Markdown file, written, edited by somebody, and read again. It is only data."""
