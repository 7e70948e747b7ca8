"""Shell, read by tree-sitter: variables, commands with their arguments, tools of NVIDIA, Python between the lines."""
