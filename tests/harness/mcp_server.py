"""An MCP server for tests, run as a process (`python mcp_server.py stdio|http|sse [PORT]`) or imported.

What its tools do is counted in `done`, which is out of every tape's reach, and in `seen`, which is not; and written to the file that MCP_SERVER_LOG names: one line a doing.
"""

import asyncio
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import mcp
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import SamplingMessage, TextContent
from pydantic import BaseModel

seen = []
vars(mcp)["what ran"] = []  # no name leads there


def __getattr__(name):
    if name != "done":
        raise AttributeError(name)
    return vars(mcp)["what ran"]


def do(what):
    vars(mcp)["what ran"].append(what)
    seen.append(what)
    if log := os.environ.get("MCP_SERVER_LOG"):
        with open(log, "a") as file:
            file.write(f"{what}\n")


class Weather(BaseModel):
    city: str
    nth: int


class Sure(BaseModel):
    sure: bool


def make():
    server = MCPServer("station")

    @server.tool()
    def weather(city: str) -> Weather:
        do(f"weather {city}")
        return Weather(city=city, nth=len(vars(mcp)["what ran"]))

    @server.tool()
    async def slow(steps: int, ctx: Context) -> str:
        for step in range(steps):
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        do("slow")
        return "slowly done"

    @server.tool()
    def broken() -> str:
        do("broken")
        raise ToolError("the sensor is wet")

    @server.tool()
    async def hang() -> str:
        do("hang")
        await asyncio.sleep(30)
        return "never"

    @server.tool()
    async def judge(text: str, ctx: Context) -> str:
        message = SamplingMessage(
            role="user", content=TextContent(type="text", text=f"Judge: {text}")
        )
        answer = await ctx.session.create_message([message], max_tokens=9)
        do(f"judge {text}")
        return f"{answer.content.text} #{len(vars(mcp)['what ran'])}"

    @server.tool()
    async def erase(path: str, ctx: Context) -> str:
        answer = await ctx.elicit(f"Erase {path}?", Sure)
        do(f"erase {path}")
        return f"{answer.action} {getattr(answer, 'data', None)}"

    @server.tool()
    async def leave() -> str:
        os._exit(3)

    @server.resource("station://status")
    def status() -> str:
        do("status")
        return f"fine {len(vars(mcp)['what ran'])}"

    @server.prompt()
    def ask(city: str) -> str:
        do("ask")
        return f"How is {city}, {len(vars(mcp)['what ran'])}?"

    return server


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@contextmanager
def running(kind, log):
    """The server as a process, listening on loopback; gives its address. It is gone when the block ends."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, __file__, kind, str(port)],
        env={
            **os.environ,
            "MCP_SERVER_LOG": str(log),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/{'sse' if kind == 'sse' else 'mcp'}"
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        make().run("stdio")
    else:
        kind = "streamable-http" if sys.argv[1] == "http" else "sse"
        make().run(kind, host="127.0.0.1", port=int(sys.argv[2]))
