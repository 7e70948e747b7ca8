"""The way of one file: prefilter, plan, carry out, verify, account, annotate, patch; files that are not Python
(`files/`); what a project uses that an NPU lacks (`analysis/`); findings as things to do (`actions/`).
"""
