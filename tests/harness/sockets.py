"""Harness: WebSocket servers on loopback, and one way to write a program for both clients of `websockets`."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from typing import Any

import trustme
import websockets
import websockets.sync.client
from websockets.datastructures import Headers
from websockets.http11 import Response
from websockets.sync.server import ServerConnection, serve
from websockets.utils import accept_key

Handler = Callable[[ServerConnection], None]


class SocketServer:
    """One handler a path; in its own threads. `asked` are the messages it got, `opened` how many connections."""

    def __init__(self, tls: ssl.SSLContext | None = None, **handlers: Handler) -> None:
        self.handlers, self.asked, self.opened, self.heads = handlers, [], 0, []
        self._server = serve(
            self._serve,
            "127.0.0.1",
            0,
            process_request=self._admit,
            select_subprotocol=_first,
            max_size=2**24,
            ssl=tls,
        )
        self.port = self._server.socket.getsockname()[1]
        self.url = f"{'wss' if tls else 'ws'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> SocketServer:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join(5)

    def _admit(self, connection: ServerConnection, request: Any) -> Response | None:
        self.opened += 1
        self.heads.append(dict(request.headers.raw_items()))
        path = request.path.partition("?")[0].rpartition("/")[2]
        if path == "moved":
            return Response(302, "Found", Headers({"Location": "/echo", "Content-Length": "0"}))
        if path == "closed":
            body = b'{"error":{"message":"no such key"}}'
            head = {
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                "X-Request-Id": "req_9",
            }
            return Response(401, "Unauthorized", Headers(head), body)
        return None

    def _serve(self, connection: ServerConnection) -> None:
        path = connection.request.path.partition("?")[0].rpartition("/")[2].rpartition(".")[2]
        heard = connection.recv

        @functools.wraps(heard)
        def recv(*args: Any, **options: Any) -> Any:
            self.asked.append(heard(*args, **options))
            return self.asked[-1]

        connection.recv = recv
        self.handlers.get(path, HANDLERS.get(path, echo))(connection)


def _first(_connection: ServerConnection, offered: list[str]) -> str | None:
    return offered[0] if offered else None


def echo(ws: ServerConnection) -> None:
    for message in ws:
        ws.send(message)


def turns(ws: ServerConnection) -> None:
    """Speaks first; answers each question in pieces; ends when told."""
    ws.send(compact(type="session.created", event_id="event_1", session={"id": "sess_1"}))
    for number, message in enumerate(ws):
        text = json.loads(message).get("text", "")
        for place, word in enumerate(f"You said {text} .".split()):
            ws.send(
                compact(
                    type="response.output_text.delta",
                    event_id=f"event_{number}_{place}",
                    delta=f"{word} ",
                )
            )
        ws.send(
            compact(
                type="response.done",
                event_id=f"event_{number}_done",
                response={"status": "completed"},
            )
        )
        if text == "bye":
            ws.close(4000, "so long")


def vanish(ws: ServerConnection) -> None:
    ws.send("last words")
    ws.recv()
    ws.socket.shutdown(socket.SHUT_WR)


def broken_text(ws: ServerConnection) -> None:
    ws.send(b"\xff\xfe", text=True)
    ws.recv()


def pieces(ws: ServerConnection) -> None:
    ws.send(["one ", "two ", "three"])
    ws.send([b"\x00", b"\x01\x02"])
    ws.send(b"")
    ws.send("")
    ws.recv()


def closing(code: int | None, reason: str = "") -> Handler:
    def close(ws: ServerConnection) -> None:
        ws.send("before")
        if code is None:
            with ws.send_context():
                ws.protocol.send_close()
        else:
            ws.close(code, reason)

    return close


HANDLERS: dict[str, Handler] = {
    "turns": turns,
    "vanish": vanish,
    "broken": broken_text,
    "pieces": pieces,
    "going": closing(1001, "restart"),
    "failed": closing(1011, "out of tea"),
    "codeless": closing(None),
}


def compact(**value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def certified() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts of a server on loopback, and of a client that trusts it."""
    authority, server, client = (
        trustme.CA(),
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        ssl.create_default_context(),
    )
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    return server, client


class RawServer:
    """Answers the handshake by hand, then `serve(socket)` does what no library would; `proof` False: a wrong answer."""

    def __init__(self, serve: Callable[[socket.socket], None], proof: bool = True) -> None:
        self.serve, self.proof, self.opened = serve, proof, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                peer, _address = self.listener.accept()
            except OSError:
                return
            self.opened += 1
            key = (
                peer.recv(4096).partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0].decode()
            )
            proof = accept_key(key) if self.proof else "no"
            head = f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {proof}\r\n\r\n"
            peer.sendall(head.encode())
            self.serve(peer)
            peer.close()

    def stop(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def reset(peer: socket.socket) -> None:
    """A message, and once the client has spoken, a reset."""
    peer.sendall(b"\x81\x04last")
    peer.recv(4096)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


# ---------------------------------------------------------------- programs


UNMANAGED: dict[str, Any] = {"legacy": True} if hasattr(websockets.sync.client, "reconnect") else {}
"""How `connect` of the threads client is told that it is used without `with`: since 17.1 it wants to know."""


class Sync:
    """The threads client, as `async with`."""

    name = "sync"

    def __init__(self, url: str, **options: Any) -> None:
        self.url, self.options = url, options

    async def __aenter__(self) -> Sync:
        from websockets.sync.client import connect

        self.ws = connect(self.url, **self.options).__enter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        self.ws.__exit__(*error)

    async def recv(self, timeout: float | None = None, **options: Any) -> Any:
        return self.ws.recv(timeout, **options)

    async def streamed(self) -> list[Any]:
        return list(self.ws.recv_streaming())

    async def send(self, message: Any) -> None:
        self.ws.send(message)

    async def ping(self) -> bool:
        return self.ws.ping().wait(5)

    async def close(self, *told: Any) -> None:
        self.ws.close(*told)

    async def all(self) -> list[Any]:
        return list(self.ws)


class Asyncio(Sync):
    """The asyncio client, through the same door."""

    name = "asyncio"

    async def __aenter__(self) -> Asyncio:
        self.manager = self.connect()(self.url, **self.options)
        self.ws = await self.manager.__aenter__()
        return self

    def connect(self) -> Callable[..., Any]:
        from websockets.asyncio.client import connect

        return connect

    async def __aexit__(self, *error: Any) -> None:
        await self.manager.__aexit__(*error)

    async def recv(self, timeout: float | None = None, **options: Any) -> Any:
        async with asyncio.timeout(timeout):
            return await self.ws.recv(**options)

    async def streamed(self) -> list[Any]:
        return [piece async for piece in self.ws.recv_streaming()]

    async def send(self, message: Any) -> None:
        await self.ws.send(message)

    async def ping(self) -> bool:
        return await asyncio.wait_for(await self.ws.ping(), 5) >= 0

    async def close(self, *told: Any) -> None:
        await self.ws.close(*told)

    async def all(self) -> list[Any]:
        return [message async for message in self.ws]


class Legacy(Asyncio):
    """The older asyncio client. It knows neither `recv_streaming` nor `decode`."""

    name = "legacy"

    def connect(self) -> Callable[..., Any]:
        from websockets.legacy.client import connect

        return connect


def told(error: BaseException) -> Any:
    """All that a program can see of an error."""
    seen = [type(error).__name__, str(error)]
    if isinstance(error, websockets.ConnectionClosed):
        seen += [error.rcvd, error.sent, error.rcvd_then_sent, type(error.__cause__).__name__]
    if isinstance(error, websockets.InvalidStatus):
        head = error.response
        seen += [
            head.status_code,
            head.reason_phrase,
            list(head.headers.raw_items()),
            bytes(head.body),
        ]
    return seen


# ---------------------------------------------------------------- providers


def openai_realtime(ws: ServerConnection) -> None:
    """As much of OpenAI's Realtime API as its SDK's readers look at; spelled as it spells, without spaces."""
    say = functools.partial(_openai, ws, itertools.count(1))
    session = {
        "type": "realtime",
        "id": "sess_1",
        "object": "realtime.session",
        "model": "gpt-realtime",
    }
    say("session.created", session=session)
    asked = "nothing"
    for message in ws:
        event = json.loads(message)
        if event["type"] == "session.update":
            say("session.updated", session={**session, **event["session"]})
        elif event["type"] == "conversation.item.create":
            asked = event["item"].get("output") or event["item"]["content"][0]["text"]
            say(
                "conversation.item.added",
                previous_item_id=None,
                item={"id": "item_1", "object": "realtime.item", **event["item"]},
            )
        elif event["type"] == "response.create":
            _respond(say, asked)
        elif event["type"] == "input_audio_buffer.commit":
            say("input_audio_buffer.committed", item_id="item_2", previous_item_id=None)


def _openai(ws: ServerConnection, numbers: Any, kind: str, **told: Any) -> None:
    ws.send(compact(type=kind, event_id=f"event_{os.urandom(4).hex()}_{next(numbers)}", **told))


def _respond(say: Callable[..., None], asked: str) -> None:
    reply = {
        "object": "realtime.response",
        "id": f"resp_{os.urandom(4).hex()}",
        "conversation_id": "conv_1",
    }
    say("response.created", response={**reply, "status": "in_progress", "output": []})
    at = {"response_id": reply["id"], "item_id": "item_9", "output_index": 0, "content_index": 0}
    if "weather" in asked:
        item = {
            "id": "item_9",
            "object": "realtime.item",
            "type": "function_call",
            "name": "weather",
            "call_id": "call_1",
            "arguments": '{"city":"Oslo"}',
            "status": "completed",
        }
        say("response.output_item.done", response_id=reply["id"], output_index=0, item=item)
        output = [item]
    else:
        text = f"You asked: {asked}. It is {os.urandom(3).hex()}."
        for word in text.split(" "):
            say("response.output_text.delta", delta=f"{word} ", **at)
        say("response.output_text.done", text=text, **at)
        output = [
            {
                "id": "item_9",
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": text}],
            }
        ]
    usage = {
        "total_tokens": 30,
        "input_tokens": 20,
        "output_tokens": 10,
        "input_token_details": {"text_tokens": 20, "cached_tokens": 4},
    }
    say(
        "response.done", response={**reply, "status": "completed", "output": output, "usage": usage}
    )


def openai_responses(ws: ServerConnection) -> None:
    """OpenAI's Responses over a WebSocket: the events of its stream, a message each."""
    for message in ws:
        event = json.loads(message)
        text = f"{event['input']}? {os.urandom(3).hex()}"
        reply: dict[str, Any] = {
            "id": f"resp_{os.urandom(4).hex()}",
            "object": "response",
            "created_at": 1,
            "model": event["model"],
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "status": "in_progress",
        }
        numbers = itertools.count()
        say = lambda kind, **told: ws.send(
            compact(type=kind, sequence_number=next(numbers), **told)
        )
        say("response.created", response=reply)
        say(
            "response.output_item.added",
            output_index=0,
            item={
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "in_progress",
                "content": [],
            },
        )
        at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        say(
            "response.content_part.added",
            part={"type": "output_text", "text": "", "annotations": []},
            **at,
        )
        for word in text.split():
            say("response.output_text.delta", delta=word, logprobs=[], **at)
        say("response.output_text.done", text=text, logprobs=[], **at)
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        say("response.content_part.done", part=part, **at)
        say("response.output_item.done", output_index=0, item=item)
        usage = {
            "input_tokens": 7,
            "output_tokens": 3,
            "total_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        say(
            "response.completed",
            response={**reply, "status": "completed", "output": [item], "usage": usage},
        )


def gemini_live(ws: ServerConnection) -> None:
    """Gemini Live: JSON in binary messages, in lines, as the real one writes it."""
    say = lambda **told: ws.send((json.dumps(told, indent=2) + "\n").encode())
    json.loads(ws.recv())["setup"]
    say(setupComplete={})
    for message in ws:
        event = json.loads(message)
        if "tool_response" in event:
            text = event["tool_response"]["functionResponses"][0]["response"]["result"]
        elif "client_content" in event:
            text = event["client_content"]["turns"][0]["parts"][0]["text"]
        else:
            continue
        if "weather" in text:
            say(
                toolCall={
                    "functionCalls": [{"id": "call_1", "name": "weather", "args": {"city": "Oslo"}}]
                }
            )
            continue
        for word in ("You", "asked:", text, os.urandom(3).hex()):
            say(serverContent={"modelTurn": {"parts": [{"text": f"{word} "}]}})
        say(serverContent={"generationComplete": True})
        say(
            serverContent={"turnComplete": True},
            usageMetadata={"promptTokenCount": 12, "responseTokenCount": 8, "totalTokenCount": 20},
        )


HANDLERS |= {
    "realtime": openai_realtime,
    "responses": openai_responses,
    "BidiGenerateContent": gemini_live,
}
