"""Records, errors and settings that everybody names; how bytes and characters of source files are read: decoding,
spans, one lexer of literals, the words that bind a text to CUDA (`text/`).
"""
