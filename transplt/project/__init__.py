"""What the files of a project say to each other."""
