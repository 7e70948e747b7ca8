"""A folder in, a folder out: options, settings, passes, worker processes, reports (`report/`); files where they are
(`checking/`), many repositories (`survey/`), branches of commits (`port/`).
"""
