"""Tools that nobody decorated, in real cells: found from what a request declares, run while recording, never in replay."""

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider

SET_UP = """
import anthropic, json
from tests.harness.tool_runs import Witness
ran = Witness()
client = anthropic.Anthropic(base_url="BASE", api_key="k")
schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

def agent(name, handle):
    messages = [{"role": "user", "content": "weather in Oslo"}]
    while True:
        reply = client.messages.create(model="m", max_tokens=9, messages=messages, tools=[{"name": name, "input_schema": schema}])
        uses = [block for block in reply.content if block.type == "tool_use"]
        if not uses:
            return reply.content[0].text
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": str(handle(use.name, use.input))} for use in uses]
        messages += [{"role": "assistant", "content": [use.model_dump(mode="json", exclude_none=True) for use in uses]}, {"role": "user", "content": results}]
"""

PROGRAMS = {
    "notebook function": (
        "def weather(city):\n    ran.append(city)\n    return {'city': city, 'nth': len(ran)}",
        "agent('weather', lambda name, given: globals()[name](**given))",
    ),
    "dict of handlers": (
        "def _impl(city):\n    ran.append(city)\n    return f'{city} {len(ran)}'\nHANDLERS = {'get_weather': _impl}",
        "agent('get_weather', lambda name, given: HANDLERS[name](**given))",
    ),
    "bound method": (
        "class Station:\n    def __init__(self): self.seen = []\n    def measure(self, city):\n"
        "        ran.append(city); return len(ran)\nstation = Station()",
        "agent('measure', lambda name, given: getattr(station, name)(**given))",
    ),
    "decorated handler": (
        "import tape_jupyter as tape\n@tape.tool\ndef _decorated(city):\n    ran.append(city)\n    return len(ran)\n"
        "RENAMED = {'ask_station': _decorated}",
        "agent('ask_station', lambda name, given: RENAMED[name](**given))",
    ),
    "anthropic tool runner": (
        "@anthropic.beta_tool\ndef forecast(city: str) -> str:\n    '''The forecast.'''\n    ran.append(city)\n    return f'rain in {city}, {len(ran)}'",
        "[m.content[0].to_dict() for m in client.beta.messages.tool_runner(model='m', max_tokens=9, tools=[forecast],"
        " messages=[{'role': 'user', 'content': 'forecast for Oslo'}])]",
    ),
    "asynchronous tool": (
        "async def fetch(city):\n    import asyncio\n    await asyncio.sleep(0.001)\n    ran.append(city)\n    return len(ran)",
        "agent_reply = client.messages.create(model='m', max_tokens=9, tools=[{'name': 'fetch', 'input_schema': schema}],"
        " messages=[{'role': 'user', 'content': 'in Oslo'}])\n(agent_reply.content[0].input, await fetch(**agent_reply.content[0].input))",
    ),
    "openai": (
        "def lookup(city):\n    ran.append(city)\n    return len(ran)\nimport openai\nchat = openai.OpenAI(base_url='BASE/v1', api_key='k')",
        "declared = [{'type': 'function', 'function': {'name': 'lookup', 'parameters': schema}}]\n"
        "call = chat.chat.completions.create(model='m', messages=[{'role': 'user', 'content': 'in Oslo'}], tools=declared).choices[0].message.tool_calls[0]\n"
        "result = {'role': 'tool', 'tool_call_id': call.id, 'content': str(lookup(**json.loads(call.function.arguments)))}\n"
        "chat.chat.completions.create(model='m', messages=[{'role': 'user', 'content': 'in Oslo'}, {'role': 'assistant', 'tool_calls': [call.to_dict()]}, result], tools=declared).choices[0].message.content",
    ),
    "langchain": (
        "from langchain_core.tools import tool\nfrom langchain_anthropic import ChatAnthropic\nfrom langchain_core.messages import HumanMessage\n"
        "@tool\ndef search(city: str) -> str:\n    '''Search.'''\n    ran.append(city)\n    return f'{city} {len(ran)}'\n"
        "model = ChatAnthropic(model='m', base_url='BASE', api_key='k', max_tokens=9).bind_tools([search])",
        "history = [HumanMessage('search Oslo')]\nhistory.append(model.invoke(history))\n"
        "history += [search.invoke(call) for call in history[-1].tool_calls]\n[m.content for m in [*history, model.invoke(history)]]",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def provider():
    with Provider(vary=True) as provider:
        yield provider


@pytest.fixture(scope="module")
def kernel(tmp_path_factory, provider):
    where = tmp_path_factory.mktemp("tools")
    with Kernel(where, {"TAPE_NOTEBOOK": str(notebook(where / "nb.ipynb", "x"))}) as kernel:
        assert kernel.execute("%load_ext tape_jupyter" + SET_UP.replace("BASE", provider.url)).ok
        yield kernel


@pytest.mark.spread(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_tool_nobody_decorated_runs_while_recording_and_never_in_replay(kernel, provider, name):
    define, program = PROGRAMS[name]
    cassette = name.replace(" ", "-")
    defined = kernel.execute(define.replace("BASE", provider.url) + "\nran.clear()")
    assert defined.ok, defined.traceback
    live = kernel.execute(f"%%tape record {cassette}\n{program}")
    assert live.ok, live.traceback
    assert "not taped" not in live.summary
    assert kernel.execute("ran").result == "['Oslo']"
    sent = len(provider.requests)
    for _ in range(2):
        again = kernel.execute(f"%%tape replay {cassette}\n{program}")
        assert (again.ok, again.result) == (True, live.result), again.traceback
    assert kernel.execute("ran").result == "['Oslo']"
    assert len(provider.requests) == sent
    assert kernel.execute(program).ok
    assert kernel.execute("ran").result == "['Oslo', 'Oslo']", "untaped, its body runs again"


def test_a_tool_that_cannot_be_found_is_named_below_the_cell_and_among_the_gaps(kernel):
    ran = kernel.execute("%%tape record hidden\nagent('inline', lambda name, given: 'sunny')")
    assert ran.ok
    assert "the result of tool inline was not taped" in ran.summary
    assert "tool inline was not taped" in kernel.execute("%tape gaps hidden").displays[0]
