"""Edits of the files, and of the commands, that say which packages a project needs."""
