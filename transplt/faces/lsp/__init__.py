"""`transplt lsp`: findings, edits and pages in an editor, over the Language Server Protocol."""
