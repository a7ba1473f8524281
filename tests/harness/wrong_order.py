"""r_8821, the wrong customer's order: an agent with plain functions in a dict of handlers, nine calls in four cells."""

from tests.harness.scripted_model import call

SET_UP = """%load_ext tape_jupyter
import json, anthropic
claude = anthropic.Anthropic(base_url="URL", api_key="sk-test")
ORDERS = {"r_8821": {"customer": "globex", "items": "9 desks"}, "r_8822": {"customer": "acme", "items": "1 chair"}}
def find_order(order):
    return ORDERS[order]
HANDLERS = {"find_order": find_order}
TOOLS = [{"name": "find_order", "description": "An order", "input_schema": {"type": "object",
          "properties": {"order": {"type": "string"}}}}]
def agent(question):
    messages, found = [{"role": "user", "content": question}], None
    while True:
        reply = claude.messages.create(model="claude-sonnet-5", max_tokens=99, messages=messages, tools=TOOLS)
        uses = [part for part in reply.content if part.type == "tool_use"]
        if not uses:
            return reply.content[0].text, found
        messages.append({"role": "assistant", "content": [part.model_dump() for part in reply.content]})
        results = [(use.id, HANDLERS[use.name](**use.input)) for use in uses]
        found = results[-1][1]
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": name, "content": json.dumps(told)} for name, told in results]})
def say(text):
    reply = claude.messages.create(model="claude-sonnet-5", max_tokens=99, messages=[{"role": "user", "content": text}])
    return reply.content[0].text"""
CELLS = (
    '%%tape record\n# Where is it\nanswer, order = agent("where is r_8821?")\nprint("answer:", answer)',
    '%%tape record\n# The mail\nmail = say("mail " + json.dumps(order))\nprint("mail:", mail)',
    '%%tape record\n# Another order\nother, _ = agent("where is r_8822?")\nprint("other:", other)',
    '%%tape record\n# Thanks\nthanks = [say("thanks"), say("thanks again")]\nprint(thanks)',
    'print("ticket:", order["customer"], "|", mail)',
)
SCRIPT = {
    "where is r_8821?": [[call("find_order", order="r_8821")], "It is on its way."],
    "where is r_8822?": [[call("find_order", order="r_8822")], "It waits."],
    "thanks": ["You are welcome."],
    "globex": ["Dear Globex, your 9 desks are on their way."],
    "acme": ["Dear Acme, your 3 lamps are on their way."],
}
RIGHT = '{"customer": "acme", "items": "3 lamps"}'
