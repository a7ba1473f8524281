"""What a function did besides returning, in the memory of its program: found out, written, done
again.

    Scope(function, arguments)          what the body can reach
    Snapshot(scope)                     how that is before the body runs
    snapshot.changes() -> Changes       what is otherwise afterwards, as structure
    redo(changes, scope)                in replay: the same objects, changed in place in the same way

What was shown, which files were written and what a framework was told is observed by taps
(instrumentation/tools/output.py) and by the notebook room (session/tool_effects.py); here nothing
is patched.
"""
