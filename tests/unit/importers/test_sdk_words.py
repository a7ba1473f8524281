"""The code that is made of a request asks what was recorded, and what a file holds is never code."""

import ast
import json

from tape_jupyter.core.call import Request
from tape_jupyter.importers import sdk_words


def asked(url, body, method="POST"):
    return sdk_words.request_words(Request(method, url, (), json.dumps(body).encode()))


def test_what_the_sdk_has_no_parameter_for_goes_in_extra_body():
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "novel": 1}
    told = asked("https://api.openai.com/v1/chat/completions", body).request_expression("client")
    assert told.startswith("client.chat.completions.create(")
    assert "extra_body={'novel': 1}" in told


def test_another_host_is_the_clients_base_url():
    told = asked("http://127.0.0.1:9/v1/responses", {"model": "m", "input": "hi"})
    assert "base_url='http://127.0.0.1:9/v1'" in told.client.make


def test_a_request_of_no_known_sdk_is_httpx():
    told = asked("https://example.org/ask", {"q": 1})
    assert told.client is None
    assert "json={'q': 1}" in told.request_expression("")


def test_texts_of_a_file_stay_texts():
    nasty = "'''\n!rm -rf x\n\"); print('out') #{}"
    body = {"model": nasty, "messages": [{"role": nasty, "content": nasty}], nasty: nasty}
    call = ast.parse(
        asked("https://api.openai.com/v1/chat/completions", body).request_expression("c"),
        mode="eval",
    ).body
    given = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
    assert {"model": given["model"], "messages": given["messages"], **given["extra_body"]} == body
