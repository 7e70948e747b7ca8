"""What a project uses that an NPU does not have, has with a limit, or has in a faster form.

The way: `api_uses` collects the uses of torch's API from a scan, `verdicts` looks them up in `tables`, `affinity` and
`advice` look at shapes of code, `extensions` follows what needs a compiled CUDA extension through the project. All of
it
ends in findings; `analysis` is the entry for one file, `effort`, `version_advice` and `report` are for a whole project.
"""
