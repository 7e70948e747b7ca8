"""After the port: does it compute the same? Curves, dumps, operators, held against those of the original."""
