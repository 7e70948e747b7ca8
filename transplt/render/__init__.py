"""How a page, a workbook or a plot is drawn, whatever it shows; the words of a verdict."""
