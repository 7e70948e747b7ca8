"""How a page, a workbook, a table or a plot is drawn, whatever it shows; the five words of a verdict."""
