"""`--amp apex`: apex for NPUs, where a program is made for it."""
