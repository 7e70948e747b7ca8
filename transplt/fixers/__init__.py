"""What is rewritten: `codemods` in every migration; `amp`, `distributed` and `tunings` when they are asked for."""
