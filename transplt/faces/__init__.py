"""Where it is met: the command line (`cli/`, with `library.py`), agents (`mcp/`), editors (`lsp/`)."""
