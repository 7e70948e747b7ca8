"""A tree on a disk, and git: what is read, how it is copied, published and known again; processes that run transplt
itself.
"""
