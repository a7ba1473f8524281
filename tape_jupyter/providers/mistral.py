"""Providers room: Mistral's chat, which is OpenAI's with lists as content and 9-character tool ids.

Looks at values only. `random_seed` for `seed` is known to openai_chat: gateways hand it through.
"""

from __future__ import annotations

from tape_jupyter.providers.openai_chat import WANTED, answer, ask, assemble

__all__ = ["WANTED", "answer", "ask", "assemble"]
