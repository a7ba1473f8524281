"""What a notebook of this collection is, and how the parts that all of them share are written."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.harness.scripted_model import Script

TAPED = "%%tape MODE"
"""First line of a taped cell; the runner says which mode."""


@dataclass(frozen=True)
class AgentNotebook:
    """Cells as their author typed them, what the model answers, and the files that lie beside the notebook at first."""

    name: str
    cells: tuple[str, ...]
    script: Script
    files: Mapping[str, str] = field(default_factory=dict)
    varies: bool = False
    """Whether two untaped runs may differ by themselves: it reads a clock, draws, or lets threads and tasks race."""
    raises: bool = False
    """Whether one of its cells ends in an error, as its author knows."""


def cells(*sources: str) -> tuple[str, ...]:
    return tuple(textwrap.dedent(source).strip("\n") for source in sources)


def taped(source: str) -> str:
    return f"{TAPED}\n{textwrap.dedent(source).strip()}"


ANTHROPIC = """
import anthropic
client = anthropic.Anthropic()
"""

ANTHROPIC_LOOP = taped("""
messages = [{"role": "user", "content": QUESTION}]
while True:
    reply = client.messages.create(model="claude-sonnet-4-6", max_tokens=500, messages=messages, tools=TOOLS)
    messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
    if reply.stop_reason != "tool_use":
        break
    results = []
    for block in reply.content:
        if block.type == "tool_use":
            content = run_tool(block.name, block.input)
            results.append({"type": "tool_result", "tool_use_id": block.id, "content": str(content)})
    messages.append({"role": "user", "content": results})
print(reply.content[0].text)
""")
"""The loop of Anthropic's guide. The notebook defines QUESTION, TOOLS and run_tool(name, input)."""

OPENAI = """
import json
import openai
client = openai.OpenAI()
"""

OPENAI_LOOP = taped("""
messages = [{"role": "user", "content": QUESTION}]
while True:
    message = client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS).choices[0].message
    messages.append(message.to_dict())
    if not message.tool_calls:
        break
    for asked in message.tool_calls:
        content = run_tool(asked.function.name, json.loads(asked.function.arguments))
        messages.append({"role": "tool", "tool_call_id": asked.id, "content": str(content)})
print(message.content)
""")

RESPONSES_LOOP = taped("""
items = [{"role": "user", "content": QUESTION}]
while True:
    response = client.responses.create(model="gpt-4o", input=items, tools=TOOLS)
    asked = [item for item in response.output if item.type == "function_call"]
    items += [item.to_dict() for item in response.output]
    if not asked:
        break
    for item in asked:
        content = run_tool(item.name, json.loads(item.arguments))
        items.append({"type": "function_call_output", "call_id": item.call_id, "output": str(content)})
print(response.output_text)
""")

GEMINI = """
from google import genai
from google.genai import types
client = genai.Client()
"""

GEMINI_LOOP = taped("""
contents = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
config = types.GenerateContentConfig(
    tools=[types.Tool(function_declarations=DECLARATIONS)],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)
while True:
    reply = client.models.generate_content(model="gemini-2.5-flash", contents=contents, config=config)
    contents.append(reply.candidates[0].content)
    if not reply.function_calls:
        break
    for asked in reply.function_calls:
        content = run_tool(asked.name, asked.args)
        part = types.Part.from_function_response(name=asked.name, response={"result": str(content)})
        contents.append(types.Content(role="user", parts=[part]))
print(reply.text)
""")


def schemas(form: str = "anthropic", **tools: str) -> str:
    """The source of TOOLS (for Gemini: DECLARATIONS): the parameters of each tool in one line, "item price:number"."""
    lines = []
    for name, told in tools.items():
        pairs = [word.partition(":")[::2] for word in told.split()]
        properties = {parameter: {"type": kind or "string"} for parameter, kind in pairs}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        description = name.replace("_", " ").capitalize() + "."
        lines.append({
            "anthropic": {"name": name, "description": description, "input_schema": schema},
            "openai": {"type": "function", "function": {"name": name, "description": description, "parameters": schema}},
            "responses": {"type": "function", "name": name, "description": description, "parameters": schema},
            "gemini": {"name": name, "description": description, "parameters": schema},
        }[form])  # fmt: skip
    body = "".join(f"    {line!r},\n" for line in lines)
    return f"{'DECLARATIONS' if form == 'gemini' else 'TOOLS'} = [\n{body}]"
