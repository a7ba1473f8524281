"""httpx and httpx2, sync and async: what a program saw while recording it sees again, with the provider gone."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
import urllib3

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Play, Reply
from tape_jupyter.errors import TapeError, UnmatchedCall
from tape_jupyter.encoding.values.registry import freeze_error
from tape_jupyter.core.context import SENDING
from tests.harness.memory_tape import MemoryTape, taped
from tests.harness.provider import Provider, Scripted, closed_port, sse
from tests.harness.timing import Expires
from tests.harness.wire_runs import deaf_port, live_source, patience, provider, tape, twice

PROMPT = {
    "model": "m",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "Where is the amber fox?"}],
}
STREAMED = {**PROMPT, "stream": True}


class Door:
    """One library in one style. Every method gives plain values, so that two runs compare."""

    def __init__(self, module: ModuleType, style: str) -> None:
        self.module, self.is_async = module, style == "async"

    def post(self, url: str, **options: Any) -> Any:
        """status, raw headers, body, version, reason, or the error's class, text and request."""
        return self._run(self._post(url, options), lambda: self._post_sync(url, options))

    def stream(
        self,
        url: str,
        read: int | None = None,
        on_chunk: Callable[[bytes], None] = bool,
        **options: Any,
    ) -> Any:
        """The raw chunks, at most `read` of them, then how it ended."""
        ending = self._stream(url, read, on_chunk, options)
        return self._run(ending, lambda: self._stream_sync(url, read, on_chunk, options))

    def _run(self, coroutine: Any, sync: Callable[[], Any]) -> Any:
        if self.is_async:
            return asyncio.run(coroutine)
        coroutine.close()
        return sync()

    def _post_sync(self, url: str, options: dict[str, Any]) -> Any:
        with self.module.Client(timeout=options.pop("timeout", 5)) as client:
            try:
                return whole(client.post(url, **options))
            except self.module.HTTPError as error:
                return told(error)

    async def _post(self, url: str, options: dict[str, Any]) -> Any:
        async with self.module.AsyncClient(timeout=options.pop("timeout", 5)) as client:
            try:
                return whole(await client.post(url, **options))
            except self.module.HTTPError as error:
                return told(error)

    def _stream_sync(
        self, url: str, read: int | None, on_chunk: Any, options: dict[str, Any]
    ) -> Any:
        chunks: list[bytes] = []
        with self.module.Client(timeout=options.pop("timeout", 5)) as client:
            try:
                with client.stream("POST", url, **options) as response:
                    for chunk in response.iter_raw():
                        chunks.append(chunk)
                        on_chunk(chunk)
                        if len(chunks) == read:
                            return chunks, "left"
            except self.module.HTTPError as error:
                return chunks, told(error)
        return chunks, "ended"

    async def _stream(
        self, url: str, read: int | None, on_chunk: Any, options: dict[str, Any]
    ) -> Any:
        chunks: list[bytes] = []
        async with self.module.AsyncClient(timeout=options.pop("timeout", 5)) as client:
            try:
                async with client.stream("POST", url, **options) as response:
                    async for chunk in response.aiter_raw():
                        chunks.append(chunk)
                        on_chunk(chunk)
                        if len(chunks) == read:
                            return chunks, "left"
            except self.module.HTTPError as error:
                return chunks, told(error)
        return chunks, "ended"


def whole(response: Any) -> Any:
    return (
        response.status_code,
        response.headers.raw,
        response.content,
        response.http_version,
        response.reason_phrase,
    )


def told(error: Any) -> Any:
    return type(error), str(error), str(error.request.url)


@pytest.fixture(params=["httpx-sync", "httpx-async", "httpx2-sync", "httpx2-async"])
def door(request: pytest.FixtureRequest) -> Door:
    name, style = request.param.split("-")
    return Door({"httpx": httpx, "httpx2": httpx2}[name], style)


def refuse() -> str:
    return f"http://127.0.0.1:{closed_port()}/v1/messages"


def test_a_json_reply_comes_back_the_same(door, provider, tape):
    status, headers, body, version, reason = twice(
        tape, provider, lambda: door.post(f"{provider.url}/v1/messages", json=PROMPT)
    )
    assert (status, version, reason) == (200, "HTTP/1.1", "OK") and b"You wrote 5 words" in body
    assert (b"content-type", b"application/json") in headers


def test_a_stream_comes_back_chunk_for_chunk(door, provider, tape):
    chunks, end = twice(
        tape, provider, lambda: door.stream(f"{provider.url}/v1/messages", json=STREAMED)
    )
    assert end == "ended" and chunks[-1].startswith(b"event: message_stop")
    assert tape.entries[0].end == "complete" and tape.entries[0].chunks == chunks


def test_a_stream_of_two_thousand_events_comes_back_chunk_for_chunk(door, provider, tape):
    events = sse(*((None, {"n": n}) for n in range(2000)))
    provider.script("/many", Scripted(200, {"content-type": "text/event-stream"}, events))
    chunks, _ = twice(tape, provider, lambda: door.stream(f"{provider.url}/many"))
    assert b"".join(chunks) == b"".join(events)


def test_status_reason_repeated_headers_and_their_spelling_come_back(door, provider, tape):
    headers = [
        ("Set-Cookie", "a=1"),
        ("X-Name", "Ünï".encode().decode("latin-1")),
        ("set-cookie", "b=2"),
        ("X-Empty", ""),
    ]
    provider.script("/odd", Scripted(418, headers, [b"tea"], reason="I am short and stout"))
    status, raw, body, _, reason = twice(tape, provider, lambda: door.post(f"{provider.url}/odd"))
    assert (status, reason, body) == (418, "I am short and stout", b"tea")
    assert [pair for pair in raw if pair[0].lower() == b"set-cookie"] == [
        (b"Set-Cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
    ]


def test_a_compressed_body_is_kept_compressed_and_read_as_before(door, provider, tape):
    packed = gzip.compress(b'{"ok": true}', mtime=0)
    provider.script("/gzip", Scripted(200, {"content-encoding": "gzip"}, [packed]))
    assert twice(tape, provider, lambda: door.post(f"{provider.url}/gzip"))[2] == b'{"ok": true}'
    assert b"".join(tape.entries[0].chunks) == packed


def test_a_reply_without_a_body_comes_back(door, provider, tape):
    provider.script("/none", Scripted(204))
    assert twice(tape, provider, lambda: door.post(f"{provider.url}/none"))[0] == 204
    assert tape.entries[0].end == "complete" and not tape.entries[0].chunks


def test_the_first_token_arrives_before_the_second_is_sent(door, provider, tape):
    asked = threading.Event()
    events = sse((None, 1), (None, 2))
    provider.script(
        "/slow", Scripted(200, {"content-type": "text/event-stream"}, events, gates={1: asked})
    )
    chunks, _ = door.stream(f"{provider.url}/slow", on_chunk=lambda _: asked.set())
    assert chunks == events


def test_a_chunk_is_on_the_tape_before_the_program_has_it(door, provider, tape):
    on_tape: list[list[bytes]] = []
    note = lambda _: on_tape.append(list(tape.entries[0].chunks))
    chunks, _ = door.stream(f"{provider.url}/v1/messages", on_chunk=note, json=STREAMED)
    assert on_tape == [chunks[: n + 1] for n in range(len(chunks))]


def test_a_tape_is_told_once_when_a_request_is_out_and_before_anything_comes(door, provider, tape):
    with taped(tape):
        door.post(provider.url + "/v1/messages", json=PROMPT)
        door.post(provider.url + "/v1/messages", json=PROMPT)
        door.post(f"http://127.0.0.1:{closed_port()}/", json=PROMPT)
    assert [entry.out for entry in tape.entries] == [1, 1, 0]  # MemoryCapture sees to the order


def test_a_program_that_traces_its_requests_hears_of_each_step_as_ever(provider, tape):
    steps: dict[bool, list[str]] = {True: [], False: []}
    for recording, heard in steps.items():
        tape.ignored = not recording
        with taped(tape), httpx2.Client() as client:
            given = {"trace": lambda step, _info, heard=heard: heard.append(step)}
            reply = client.post(provider.url + "/v1/messages", json=PROMPT, extensions=given)
            assert reply.request.extensions["trace"] is given["trace"]
            assert (
                "trace"
                not in client.post(provider.url + "/v1/messages", json=PROMPT).request.extensions
            )
    assert steps[True] == steps[False] != []


def test_a_refused_connection_is_the_same_error_again(door, provider, tape):
    url = refuse()
    kind, text, asked = twice(tape, provider, lambda: door.post(url, json=PROMPT))
    assert kind is door.module.ConnectError and asked == url


def test_a_connection_closed_without_an_answer_is_the_same_error_again(door, provider, tape):
    provider.script("/gone", Scripted(0, then="close"))
    kind, text, _ = twice(tape, provider, lambda: door.post(f"{provider.url}/gone"))
    assert kind is door.module.RemoteProtocolError and "without sending a response" in text


def test_a_connection_that_takes_too_long_is_the_same_error_again(door, provider, tape):
    with deaf_port() as port:
        url = f"http://127.0.0.1:{port}/"
        kind, _, _ = twice(tape, provider, lambda: door.post(url, timeout=0.1))
    assert kind is door.module.ConnectTimeout


def test_an_answer_that_takes_too_long_is_the_same_error_again(door, provider, tape):
    provider.script("/mute", Scripted(0, then="hang"))
    kind, _, _ = twice(tape, provider, lambda: door.post(f"{provider.url}/mute", timeout=0.1))
    assert kind is door.module.ReadTimeout


@pytest.mark.parametrize("then", ["reset", "close", "hang"])
def test_a_stream_that_breaks_off_gives_the_same_part_and_the_same_error(
    door, provider, tape, then
):
    events, read = sse((None, 1), (None, 2), (None, 3)), threading.Event()
    provider.script("/breaks", Scripted(200, {}, events[:2], then=then, gates={1: read, 2: read}))
    count = []

    def on_chunk(_: bytes) -> None:
        count.append(1)
        read.set()

    chunks, (kind, _, _) = twice(
        tape,
        provider,
        lambda: door.stream(f"{provider.url}/breaks", on_chunk=on_chunk, timeout=patience(then)),
    )
    expected = {"reset": "ReadError", "close": "RemoteProtocolError", "hang": "ReadTimeout"}[then]
    assert kind is getattr(door.module, expected) and chunks[0] == events[0]
    assert tape.entries[0].end == "error"


def test_a_body_shorter_than_its_length_is_the_same_error_again(door, provider, tape):
    provider.script("/short", Scripted(200, {"content-length": "10"}, [b"five!"], then="close"))
    kind, text, _ = twice(tape, provider, lambda: door.post(f"{provider.url}/short"))
    assert kind is door.module.RemoteProtocolError and "received 5 bytes, expected 10" in text


def test_an_error_recorded_with_one_library_is_raised_as_the_other_librarys(provider, tape):
    url = refuse()
    assert Door(httpx, "sync").post(url)[0] is httpx.ConnectError
    tape.rewind()
    assert Door(httpx2, "async").post(url)[0] is httpx2.ConnectError


def test_a_stream_left_early_replays_to_the_same_byte(door, provider, tape):
    chunks, end = twice(
        tape, provider, lambda: door.stream(f"{provider.url}/v1/messages", read=3, json=STREAMED)
    )
    assert end == "left" and tape.entries[0].chunks == chunks and tape.entries[0].end == "closed"


@pytest.mark.parametrize("module", [httpx, httpx2])
def test_a_stream_read_in_two_goes_continues_where_it_stopped(module, provider, tape):
    provider.script(
        "/v1",
        Scripted(200, {"content-type": "text/event-stream"}, sse(*[(None, n) for n in range(5)])),
    )

    async def run() -> Any:
        async with (
            module.AsyncClient() as client,
            client.stream("POST", provider.url + "/v1") as response,
        ):
            first = aiter(
                response.stream
            )  # held: a connection's stream is closed with its first reader
            return [await anext(first), await anext(first)], [
                chunk async for chunk in response.stream
            ]

    def run_sync() -> Any:
        with module.Client() as client, client.stream("POST", provider.url + "/v1") as response:
            first = iter(response.stream)
            return [next(first)], list(response.stream)

    seen = twice(tape, provider, lambda: (asyncio.run(run()), run_sync()))
    assert [[len(goes[0]), len(goes[1])] for goes in seen] == [[2, 3], [1, 4]]


def test_reading_past_the_point_where_the_program_left_is_refused(door, provider, tape):
    door.stream(f"{provider.url}/v1/messages", read=3, json=STREAMED)
    tape.rewind()
    with pytest.raises(UnmatchedCall, match="the recording ends here.*after 3 chunks"):
        door.stream(f"{provider.url}/v1/messages", json=STREAMED)


def test_an_interrupt_inside_a_read_is_told_and_passes(provider, tape):
    class Interrupted:
        def __iter__(self) -> Iterator[bytes]:
            yield b"a"
            raise KeyboardInterrupt

        def close(self) -> None: ...

    transport = httpx.HTTPTransport()
    transport._pool.handle_request = lambda request: httpx_core_response(Interrupted())
    with httpx.Client(transport=transport) as client, pytest.raises(KeyboardInterrupt):
        client.get("http://example.invalid/")
    assert tape.entries[0].end == "cut short" and tape.entries[0].chunks == [b"a"]
    assert not SENDING.get()


def httpx_core_response(stream: Any) -> Any:
    import httpcore

    response = httpcore.Response(200)
    response.stream = stream
    return response


def test_a_miss_is_raised_at_once_and_nothing_is_sent(door, provider, tape):
    tape.rewind()
    with pytest.raises(UnmatchedCall):
        door.post(f"{provider.url}/v1/messages", json=PROMPT)
    assert provider.connections == 0


def test_a_call_the_tape_does_not_want_passes_untouched(door, provider, tape):
    tape.ignored = True
    assert door.post(f"{provider.url}/v1/messages", json=PROMPT)[0] == 200
    assert not tape.entries


def test_a_reply_edited_to_another_length_says_its_own(door, provider, tape):
    door.post(f"{provider.url}/v1/messages", json=PROMPT)
    tape.entries[0].chunks = [b'{"edited": true}']
    tape.rewind()
    _, headers, body, *_ = door.post(f"{provider.url}/v1/messages", json=PROMPT)
    assert body == b'{"edited": true}' and (b"content-length", b"16") in headers


# Request bodies


@pytest.mark.parametrize("module", [httpx, httpx2])
def test_streamed_and_multipart_request_bodies_are_seen_and_sent_whole(module, provider, tape):
    async def parts() -> Any:
        yield b"one,"
        yield b"two"

    async def send() -> None:
        async with module.AsyncClient() as client:
            await client.post(f"{provider.url}/x", content=parts())
            await client.post(f"{provider.url}/x", files={"f": ("a.txt", b"file body")})

    with module.Client() as client:
        client.post(f"{provider.url}/x", content=(part for part in [b"one,", b"two"]))
        client.post(f"{provider.url}/x", files={"f": ("a.txt", b"file body")})
    asyncio.run(send())
    assert [seen.body for seen in provider.requests] == [
        entry.request.body for entry in tape.entries
    ]
    assert [b"one,two" == entry.request.body for entry in tape.entries] == [
        True,
        False,
        True,
        False,
    ]
    assert (
        b"file body" in tape.entries[1].request.body
        and b"file body" in tape.entries[3].request.body
    )
    assert provider.requests[0].headers["transfer-encoding"] == "chunked"


def streamed(door: Door, parts: Iterator[bytes]) -> Any:
    """A body without a length, in the style of the door."""

    async def awaited() -> Any:
        for part in parts:
            yield part

    return awaited() if door.is_async else parts


def test_an_untaped_body_is_sent_as_it_comes(door, provider, tape):
    tape.ignored = True
    door.post(f"{provider.url}/x", content=streamed(door, live_source(provider)))
    assert provider.requests[0].body == b"somebody listens" and not tape.entries


def test_a_body_that_can_be_read_once_is_not_sent_twice(door, provider, tape):
    """As httpx has it: a redirect that would repeat such a body is an error."""
    provider.script("/there", Scripted(307, {"location": "/here"}))

    def run() -> Any:
        body = streamed(door, (part for part in [b"one,", b"two"]))
        with pytest.raises(door.module.StreamConsumed):
            door.post(f"{provider.url}/there", content=body, follow_redirects=True)

    twice(tape, provider, run)
    assert tape.entries[0].request.body == provider.requests[0].body == b"one,two"


def test_the_request_is_told_as_it_was_given(door, provider, tape):
    url = f"{provider.url}/v1/messages?b=2&a=%C3%BC"
    door.post(url, json=PROMPT, headers=[("X-Two", "1"), ("x-two", "2")])
    request = tape.entries[0].request
    assert (request.method, request.url) == ("POST", url)
    assert [pair for pair in request.headers if pair[0].lower() == "x-two"] == [
        ("X-Two", "1"),
        ("x-two", "2"),
    ]


# Cancelling


async def consume(module: ModuleType, url: str, chunks: list[bytes], seen: asyncio.Event) -> None:
    async with module.AsyncClient() as client, client.stream("POST", url) as response:
        async for chunk in response.aiter_raw():
            chunks.append(chunk)
            seen.set()


@pytest.mark.parametrize("module", [httpx, httpx2])
def test_a_task_cancelled_mid_stream_replays_to_the_same_byte(module, provider, tape):
    provider.script(
        "/long",
        Scripted(200, {}, sse((None, 1), (None, 2)), then="hang", gates={1: threading.Event()}),
    )

    async def cancelled() -> Any:
        chunks: list[bytes] = []
        seen = asyncio.Event()
        task = asyncio.create_task(consume(module, f"{provider.url}/long", chunks, seen))
        await seen.wait()
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return chunks

    assert len(twice(tape, provider, lambda: asyncio.run(cancelled()))) == 1
    assert tape.entries[0].error["class"] == "asyncio.exceptions:CancelledError"


@pytest.mark.parametrize("module", [httpx, httpx2])
@pytest.mark.parametrize("path", ["/mute", "/stalls"])
def test_a_timeout_around_a_call_is_a_timeout_again(module, path, provider, tape):
    provider.script("/mute", Scripted(0, then="hang"))
    provider.script("/stalls", Scripted(200, {}, [b"a"], then="hang"))

    async def limited() -> Any:
        chunks: list[bytes] = []
        try:
            async with asyncio.timeout(0.1 if path == "/mute" else None) as limit:
                await consume(module, provider.url + path, chunks, Expires(limit))
        except TimeoutError as error:
            return chunks, str(error)

    chunks, _ = twice(tape, provider, lambda: asyncio.run(limited()))
    assert chunks == ([] if path == "/mute" else [b"a"])


def test_a_task_group_with_one_failure_fails_in_the_same_way(provider, tape):
    started = threading.Event()
    provider.script("/fails", Scripted(500, {}, [b"no"], gates={0: started}))
    provider.script("/waits", Scripted(200, {}, [b"a"], then="hang"))

    async def group() -> Any:
        chunks: list[bytes] = []
        async with httpx.AsyncClient() as client:

            async def fails() -> None:
                (await client.post(f"{provider.url}/fails")).raise_for_status()

            async def waits() -> None:
                async with client.stream("POST", f"{provider.url}/waits") as response:
                    async for chunk in response.aiter_raw():
                        chunks.append(chunk)
                        started.set()

            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(waits())
                    tasks.create_task(fails())
            except* httpx.HTTPStatusError as errors:
                statuses = [error.response.status_code for error in errors.exceptions]
        return chunks, statuses

    assert twice(tape, provider, lambda: asyncio.run(group())) == ([b"a"], [500])


# Layers and patches


def test_one_transport_on_top_of_another_is_recorded_once(provider, tape):
    class OverUrllib3:
        def handle_request(self, request: Any) -> Any:
            import httpcore

            url = bytes(request.url).decode()
            reply = urllib3.request("POST", url, body=b"".join(request.stream))
            return httpcore.Response(reply.status, content=reply.data)

        def __enter__(self) -> None: ...
        def __exit__(self, *exc: object) -> None: ...
        def close(self) -> None: ...

    def layered() -> Any:
        transport = httpx.HTTPTransport()
        transport._pool = OverUrllib3()
        with httpx.Client(transport=transport) as client:
            return client.post(f"{provider.url}/v1/messages", json=PROMPT).content

    assert b"You wrote" in twice(tape, provider, layered)
    assert len(tape.entries) == 1 and len(provider.requests) == 1


def test_clients_made_before_the_patch_are_taped_and_the_undo_is_complete(provider):
    before = {
        (module, owner): dict(vars(getattr(module, owner)))
        for module in (httpx, httpx2)
        for owner in ("HTTPTransport", "AsyncHTTPTransport")
    }
    with httpx.Client() as client, taped(MemoryTape()) as tape:
        client.post(f"{provider.url}/v1/messages", json=PROMPT)
        assert len(tape.entries) == 1
    assert {key: dict(vars(getattr(*key))) for key in before} == before
    assert instrumentation.current() is None


def test_patching_twice_records_once(provider, tape):
    instrumentation.patch_all()
    httpx.post(f"{provider.url}/v1/messages", json=PROMPT)
    assert len(tape.entries) == 1


# SDKs


CHAT = {"model": "m", "messages": PROMPT["messages"]}
TOOL = {
    "name": "look_up",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def claude(url: str, **asked: Any) -> Any:
    with anthropic.Anthropic(base_url=url, api_key="k") as client:
        return client.messages.create(**PROMPT, **asked).to_dict()


def claude_stream(url: str) -> Any:
    with (
        anthropic.Anthropic(base_url=url, api_key="k") as client,
        client.messages.stream(**PROMPT) as stream,
    ):
        return list(stream.text_stream), stream.get_final_message().to_dict()


async def claude_async_stream(url: str) -> Any:
    async with (
        anthropic.AsyncAnthropic(base_url=url, api_key="k") as client,
        client.messages.stream(**PROMPT) as stream,
    ):
        return [text async for text in stream.text_stream], (
            await stream.get_final_message()
        ).to_dict()


def chat(url: str) -> Any:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        return client.chat.completions.create(**CHAT).to_dict()


def chat_stream(url: str) -> Any:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        return [chunk.to_dict() for chunk in client.chat.completions.create(**CHAT, stream=True)]


async def chat_async_stream(url: str) -> Any:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k") as client:
        return [
            chunk.to_dict()
            async for chunk in await client.chat.completions.create(**CHAT, stream=True)
        ]


async def chats_gathered(url: str) -> Any:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k") as client:
        replies = await asyncio.gather(
            *(client.chat.completions.create(**CHAT, seed=n) for n in range(5))
        )
        return [reply.to_dict() for reply in replies]


def responses(url: str, **asked: Any) -> Any:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        answer = client.responses.create(model="m", input="hi there", **asked)
        return [event.to_dict() for event in answer] if asked else answer.to_dict()


@pytest.mark.parametrize(
    "run",
    [
        claude,
        lambda url: claude(url, tools=[TOOL]),
        claude_stream,
        lambda url: asyncio.run(claude_async_stream(url)),
        chat,
        chat_stream,
        lambda url: asyncio.run(chat_async_stream(url)),
        lambda url: asyncio.run(chats_gathered(url)),
        responses,
        lambda url: responses(url, stream=True),
    ],
)
def test_an_sdk_gives_the_same_objects_again(run, tape):
    with Provider(vary=True) as provider:
        assert twice(tape, provider, lambda: run(provider.url))


def test_an_sdk_retries_a_recorded_429_as_it_did_live(provider, tape):
    busy = Scripted(
        429,
        {"retry-after-ms": "1", "content-type": "application/json"},
        [b'{"error":{"message":"slow"}}'],
    )
    provider.script(
        "/v1/messages",
        busy,
        busy,
        Scripted(200, {"content-type": "application/json"}, [b'{"id":"m"}']),
    )
    with anthropic.Anthropic(base_url=provider.url, api_key="k") as client:
        assert twice(tape, provider, lambda: client.messages.create(**PROMPT).id) == "m"
    assert [entry.status for entry in tape.entries] == [429, 429, 200]


def test_a_miss_reaches_the_program_through_an_sdk_at_once(provider, tape):
    tape.rewind()
    client = anthropic.Anthropic(base_url=provider.url, api_key="k")
    with pytest.raises(UnmatchedCall):
        client.messages.create(**PROMPT)
    assert len(tape.missed) == 1, "the SDK waited, and asked again"


# What a reply leads to besides its bytes


def network_stream(door: Door, url: str, **options: Any) -> Any:
    """The status of a reply, and the stream below it while it was open."""

    async def awaited() -> Any:
        async with (
            door.module.AsyncClient() as client,
            client.stream("POST", url, **options) as reply,
        ):
            return reply.status_code, reply.extensions["network_stream"]

    if door.is_async:
        return asyncio.run(awaited())
    with door.module.Client() as client, client.stream("POST", url, **options) as reply:
        return reply.status_code, reply.extensions["network_stream"]


def test_the_stream_below_a_reply_says_whom_it_was_with_and_refuses_the_rest(door, provider, tape):
    network_stream(door, f"{provider.url}/v1/messages", json=PROMPT)
    tape.rewind()
    _, below = network_stream(door, f"{provider.url}/v1/messages", json=PROMPT)
    assert below.get_extra_info("server_addr") == ("127.0.0.1", provider.port)
    below.get_extra_info("socket").settimeout(3)
    assert below.get_extra_info("socket").gettimeout() == 3
    assert below.get_extra_info("ssl_object") is None and below.get_extra_info("anything") is None
    with pytest.raises(
        TapeError, match=r"write\(\) on the connection to 127.0.0.1:\d+ was refused"
    ):
        below.write(b"hi")


def test_a_connection_taken_over_for_another_protocol_is_named_while_recording(
    door, provider, tape
):
    provider.script("/upgrade", Scripted(101, {"upgrade": "echo", "connection": "upgrade"}))
    headers = {"upgrade": "echo", "connection": "upgrade"}
    assert network_stream(door, f"{provider.url}/upgrade", headers=headers)[0] == 101
    assert "taken over for another protocol" in tape.notes[0] and len(tape.notes) == 1


# Replies nobody recorded in this process


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (ConnectionRefusedError(111, "no"), "ConnectError"),
        (TimeoutError("late"), "ReadTimeout"),
        (OSError(5, "io"), "ReadError"),
    ],
)
def test_an_injected_fault_is_raised_as_the_librarys_own_error(door, fault, name):
    class Faulty(MemoryTape):
        def begin(self, call: Any) -> Play:
            return Play(Reply(None, end="error", error=freeze_error(fault)))

    with taped(Faulty()):
        assert door.post("http://example.invalid/")[:2] == (getattr(door.module, name), str(fault))


def test_an_error_whose_class_is_not_here_is_a_refusal_that_says_so():
    class Foreign(MemoryTape):
        def begin(self, call: Any) -> Play:
            error = {"<type>": "exception", "class": "nowhere.to_be_found:Gone", "args": ["x"]}
            return Play(Reply(None, end="error", error=error))

    with taped(Foreign()), pytest.raises(UnmatchedCall, match="nowhere"):
        httpx.get("http://example.invalid/")
