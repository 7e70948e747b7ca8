"""Kernels in Triton alone, for `transplt prove --kernels`: the calls of a program are recorded (`recording`), made
again with the original and with the migrated kernels (`replaying`), and what both computed is compared (`comparing`).

Each of the three is a module that an interpreter with torch is started with; the calls go from one to the next as JSON.
"""
