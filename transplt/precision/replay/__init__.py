"""The recorded operators of one run, computed again from their recorded inputs on another device."""
