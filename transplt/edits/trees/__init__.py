"""What an edit makes of one site: LibCST writes every change of existing Python, but for text inside of strings."""
