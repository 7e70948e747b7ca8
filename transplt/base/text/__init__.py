"""Bytes and characters of source files: decoding, spans, literals, words that bind a text to CUDA."""
