"""Documents (.md, .rst): the commands and the code in their blocks."""
