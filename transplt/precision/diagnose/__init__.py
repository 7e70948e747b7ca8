"""Logs of a training held against the known errors; what a host has (`doctor`); tables and traces of profilers
(`profiles/`).
"""
