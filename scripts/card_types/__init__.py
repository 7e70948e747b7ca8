"""Which types the card's operators take, read from the C++ of CANN and of op-plugin: see `scripts/build_card_types.py`."""
