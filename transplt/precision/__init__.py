"""Does it compute the same: dumps and logs of two runs, read without running anything of them, aligned and judged;
copies of programs that record what they compute (`instrument/`); what went wrong on a host (`diagnose/`).
"""
