"""`transplt mcp`: the tools of transplt for programs that port on their own, over the Model Context Protocol."""
