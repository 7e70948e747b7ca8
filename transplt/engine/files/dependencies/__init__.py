"""Edits of the files, and of the commands, that list which packages a project needs."""
