"""The arguments of CANN's operator functions, as prototypes and op-plugin have them (`read_card_functions.py`)."""
