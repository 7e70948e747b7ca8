"""What everybody names and reads by: records, errors, settings; bytes and characters of source files (`text/`), a tree
on a disk and git (`disk/`), pages, tables and workbooks (`render/`).
"""
