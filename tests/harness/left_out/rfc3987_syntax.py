"""Stands before the package of this name: jsonschema does without it, and so do processes that tests start.

Where jsonschema finds it, the import of nbformat compiles 38 grammars that none of its schemas asks for: 2 s of a
processor in each JupyterLab, papermill and `jupyter execute`.
"""

raise ImportError("left out by tape-jupyter's tests")
