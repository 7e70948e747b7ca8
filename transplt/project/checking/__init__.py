"""`transplt check`: findings about files where they are, and the edits in place that `--fix` makes."""
