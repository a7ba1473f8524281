"""The replies that tapestub.py gives: recorded ones and changed ones, by prompt (tools: by `name:key=value,...`)."""

import sys
import types

__file__ = None  # like a library's, this state is not the notebook's
_TABLE, _OVERRIDE, _ASKED, _TOLD = {}, {}, [], []


def _reply(key):
    _ASKED.append(key)
    for told in _TOLD:
        told()
    return _OVERRIDE.get(key, _TABLE.get(key, f"R<{key}>"))


def set_replies(table, override):
    """Recorded replies, and those that are changed."""
    for kept, given in ((_TABLE, table), (_OVERRIDE, override)):
        kept.clear()
        kept.update(given)
    _ASKED.clear()


def tell(*listeners):
    """Whom each call is told of while it is made, as the tracker is in a notebook."""
    _TOLD[:] = listeners


def asked():
    """The prompts since this was last called."""
    prompts = list(_ASKED)
    _ASKED.clear()
    return prompts


sys.modules["tape_replies"] = types.ModuleType("tape_replies")
sys.modules["tape_replies"].reply = _reply
