"""What everybody says: records, errors and settings; text and bytes of source files."""
