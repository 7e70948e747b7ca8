"""The one switch of this module that scripts set."""

LOAD_TRUNCATED_IMAGES = False
