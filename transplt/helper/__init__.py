"""What a port needs beyond an edit of a call: the functions and classes of which `npu_port.py` is made.

`transplt/edits/helper_source.py` reads these modules as text, and takes from them what a project calls: what `__all__`
of each names. They run in the user's program, and import the standard library, torch and torch_npu; what belongs to
another package imports that. Definitions stand at the top of a module, `import` of another of these modules as
`from transplt.helper.x import name`; a comment above a definition goes with it. No two modules have the same name, in
whatever folder here they lie, and no two of them offer the same.
"""
