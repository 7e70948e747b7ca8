"""Which types the card's operators take, followed through the C++ of op-plugin and CANN (`read_card_types.py`)."""
