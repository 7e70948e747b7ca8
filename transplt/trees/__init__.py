"""What an edit makes of the text of one site: by places that `ast` gives, or by a small tree of LibCST."""
