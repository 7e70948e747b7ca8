"""Where values and calls go, in a file and over the files of a project; what files say to each other; conditions on the
device, and what only the side of CUDA reaches (`gates/`).
"""
