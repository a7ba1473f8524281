"""Twenty causes in programs of another kind: real SDKs (anthropic, openai; async, streams, tool loops, retries), and what
such programs carry about. Written after the search was done and never used to change it.
"""

from benchmarks.causes.cases import Case

CLAUDE = """import anthropic
claude = anthropic.Anthropic(base_url="http://127.0.0.1:8907", api_key="k", max_retries=2)
def say(text, **more):
    asked = [{"role": "user", "content": text}]
    reply = claude.messages.create(model="claude-sonnet-4-5", max_tokens=100, messages=asked, **more)
    return reply.content[0].text"""
LATER = """import anthropic, asyncio
later = anthropic.AsyncAnthropic(base_url="http://127.0.0.1:8907", api_key="k")
async def say(text):
    asked = [{"role": "user", "content": text}]
    reply = await later.messages.create(model="claude-sonnet-4-5", max_tokens=100, messages=asked)
    return reply.content[0].text"""
GPT = """import openai
gpt = openai.OpenAI(base_url="http://127.0.0.1:8907/v1", api_key="k")"""
TOOL_LOOP = """@tape.tool
def weather(city):
    return {"Oslo": 3, "Rome": 24, "Lima": 19}[city]
schema = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
def run(question):
    messages = [{"role": "user", "content": question}]
    for _ in range(6):
        said = gpt.chat.completions.create(model="gpt-4o", messages=messages, tools=schema).choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return said.content
        for call in said.tool_calls:
            told = weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": f"degrees: {told}"})"""


def calls(city):
    return {"text": None, "tool_calls": [("weather", {"city": city})]}


def sdk(name, kind, cells, says, check, minimal, **more):
    return Case(name, kind, cells, says, check, minimal, folder="sdks", **more)


SDKS = [
    sdk(
        "one-of-six-that-are-gathered", "single, async",
        [LATER, 'topics = ["tax", "rent", "food", "fuel", "toys", "pets"]\nnotes = await asyncio.gather(*(say(f"Is {t} dear?") for t in topics))',
         'dear = [t for t, said in zip(topics, notes) if said.startswith("Yes")]'],
        {f"Is {t} dear": (("Yes, very." if t in ("rent", "fuel") else "No."), ("Yes, very." if t == "rent" else "Not at all."))
         for t in ("tax", "rent", "food", "fuel", "toys", "pets")},
        "'fuel' in dear", [["model fuel"]],
    ),
    sdk(
        "a-word-that-is-streamed", "single, stream",
        [CLAUDE, 'parts = []\nfor topic in ("past", "present", "future"):\n    asked = [{"role": "user", "content": f"The {topic}?"}]\n'
         '    with claude.messages.stream(model="claude-sonnet-4-5", max_tokens=100, messages=asked) as stream:\n        parts.append("".join(stream.text_stream))',
         'alarm = any("urgent" in part for part in parts)'],
        {"past": ("It was all calm then", "It was calm then"), "present": ("This is an urgent matter now", "This is an old matter now"),
         "future": ("Who can say what comes", "Nobody can say")},
        "alarm", [["model present"]],
    ),
    sdk(
        "the-tool-is-asked-for-another-city", "single, tool loop",
        [GPT, TOOL_LOOP, 'answer = run("Where I live, how warm?")\nother = run("And a joke?")', 'warm = "24" in answer'],
        {"Where I live": (calls("Rome"), calls("Oslo")), "degrees: 24": ("It has 24 degrees.",) * 2,
         "degrees: 3": ("It has 3 degrees.",) * 2, "joke": ("Ha.", "Ha ha.")},
        "warm", [["model Where I live"]],
    ),
    sdk(
        "the-right-city-read-wrongly", "single, after a tool",
        [GPT, TOOL_LOOP, 'answer = run("How warm is Lima?")', 'degrees = int("".join(c for c in answer if c.isdigit()))'],
        {"How warm": (calls("Lima"), calls("Lima")), "degrees: 19": ("It has 19 degrees there.", "It has 91 degrees here.")},
        "degrees < 40", [["model degrees: 19"]],
    ),
    sdk(
        "overloaded-once-and-then-another-answer", "an error that is retried",
        [CLAUDE, 'first = say("Name a colour")', 'second = say("Name a beast")', "both = first + ' ' + second"],
        {"Name a colour": ("blue", {"text": "blue!", "status": 529, "once": "navy"}), "Name a beast": ("fox", "FOX")},
        "'blue' in both", [["call 1"]],
    ),
    sdk(
        "structured-output-lacks-a-field", "a class of pydantic",
        [GPT, 'import pydantic\nclass Invoice(pydantic.BaseModel):\n    total: float\n    currency: str = "EUR"\n    paid: bool = False',
         'def read(n):\n    said = gpt.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": f"Invoice {n} as JSON"}])\n'
         '    return Invoice.model_validate_json(said.choices[0].message.content)\ninvoices = [read(n) for n in range(5)]',
         "open_sum = sum(i.total for i in invoices if not i.paid)"],
        {f"Invoice {n} as": ('{"total": %d, "paid": true}' % (n + 1), '{"total": %d%s}' % (n + 1, ', "paid": true' if n != 3 else ', "currency": "USD"')) for n in range(5)},
        "open_sum == 0", [["model Invoice 3"]],
    ),
    sdk(
        "two-scores-of-ten-below-the-mean", "joint of two",
        [CLAUDE, 'scores = [int(say(f"Score essay {n}")) for n in range(10)]', "mean = sum(scores) / len(scores)", 'comment = say("Comment on all")'],
        {f"Score essay {n}": (str(70 + n + (15 if n in (2, 7) else 0)), str(70 + n)) for n in range(10)},
        "mean >= 77.5", [["model Score essay 2", "model Score essay 7"]],
    ),
    sdk(
        "three-of-a-set-of-tools", "joint of three tools",
        ['@tape.tool\ndef stock(item):\n    have = {"nut": 4, "bolt": 6, "cap": 2, "pin": 9, "rod": 1}[item]\n'
         '    return {"item": item, "have": have if os.environ["WORLD"] == "good" else (0 if item in ("nut", "cap", "rod") else have + 1)}',
         'have = {i: stock(i)["have"] for i in ("nut", "bolt", "cap", "pin", "rod")}',
         'kits = min(have[i] for i in ("nut", "cap", "rod"))'],
        {}, "kits > 0", [["tool stock 1", "tool stock 3", "tool stock 5"]],
    ),
    sdk(
        "an-async-tool-rounds", "rounding in a tool",
        [LATER, '@tape.tool\nasync def rate(pair):\n    await asyncio.sleep(0)\n    exact = {"EURUSD": 1.0849, "EURGBP": 0.8351, "EURCHF": 0.9473}[pair]\n'
         '    return exact if os.environ["WORLD"] == "good" else round(exact, 2)',
         'pairs = ["EURUSD", "EURGBP", "EURCHF"]\nrates = dict(zip(pairs, await asyncio.gather(*map(rate, pairs))))',
         'worth = round(10_000 * rates["EURCHF"], 0)'],
        {}, "worth == 9473", [["tool rate 3"]],
    ),
    sdk(
        "the-order-of-hits-changes", "a stale retrieval",
        [CLAUDE, '@tape.retrieval\ndef find(query):\n    hits = [("new", f"{query}: 30 days"), ("old", f"{query}: 14 days"), ("blog", "hello")]\n'
         '    return hits if os.environ["WORLD"] == "good" or query != "returns" else [hits[1], hits[0], hits[2]]',
         'top = {q: find(q)[0][1] for q in ("shipping", "returns", "repairs")}',
         'answer = say(f"Answer by: {top}")', 'days = 30 if "30" in answer else 14'],
        {"returns: 30": ("You have 30 days.",) * 2, "returns: 14": ("You have 14 days.",) * 2},
        "days == 30", [["retrieval find 2"]],
    ),
    sdk(
        "a-note-that-is-read-much-later", "a memory that carries over",
        [CLAUDE, "from dataclasses import dataclass, field\n@dataclass\nclass Agent:\n    notes: dict = field(default_factory=dict)\n"
         '    def hear(self, who, text):\n        self.notes.setdefault(who, []).append(say(f"Keep from {who}: {text}"))\n'
         '    def allergic(self, who):\n        return any("nuts" in note for note in self.notes.get(who, ()))\nagent = Agent()',
         'agent.hear("Ann", "I love soup")\nagent.hear("Bob", "No nuts for me, please")', 'small = say("Small talk")',
         'agent.hear("Ann", "It is late")\nagent.hear("Bob", "Bye")', 'served = "soup" if agent.allergic("Bob") else "nut cake"'],
        {"No nuts": ("Bob: allergic to nuts", "Bob: is polite"), "I love soup": ("Ann: soup", "Ann: soup!"), "Small talk": ("Hm", "Hmm")},
        "served == 'soup'", [["model No nuts"]],
    ),
    sdk(
        "closed-at-the-weekend", "a clock",
        [CLAUDE, 'mood = say("Mood?")', "from datetime import datetime\ntoday = datetime.now()\nis_open = today.weekday() < 5", 'note = say("A note?")', 'reply = "Come in" if is_open else "Come on Monday"'],
        {}, "reply == 'Come in'", [["clock:4"]],
        clocks={4: ("2026-03-06T12:00:00", "2026-03-07T12:00:00")},
    ),
    sdk(
        "urgent-after-hours", "joint of a clock and a reply",
        [CLAUDE, "import time\nhour = time.gmtime().tm_hour", 'kind = say("Urgent or not: the boiler leaks")', 'sent = kind == "urgent" and 8 <= hour < 18'],
        {"Urgent or not": ("urgent", "normal")}, "sent", [["clock:3", "model Urgent"]],
        clocks={3: ("2026-03-06T09:00:00", "2026-03-06T20:00:00")},
    ),
    sdk(
        "the-examples-that-numpy-drew", "chance",
        [CLAUDE, "import numpy as np\nrng = np.random.default_rng()\nshots = sorted(rng.choice(8, 3, replace=False).tolist())", 'said = say("Go on")', "has_first = 0 in shots"],
        {}, "has_first", [["chance:3"]],
    ),
    sdk(
        "the-fallback-is-quicker", "timing",
        [LATER, 'async def first(*asked):\n    done, late = await asyncio.wait([asyncio.create_task(say(a)) for a in asked], return_when=asyncio.FIRST_COMPLETED)\n'
         '    best = done.pop().result()\n    await asyncio.gather(*late)\n    return best\nchosen = await first("Ask the large one", "Ask the small one")',
         'large = chosen.startswith("Large")'],
        {"large one": ("Large says so", "Large says so", 0.05, 0.6), "small one": ("Small says so", "Small says so", 0.6, 0.05)},
        "large", [["clock:3"]],
    ),
    sdk(
        "given-up-after-a-while", "timing",
        [LATER, 'try:\n    answer = await asyncio.wait_for(say("Think hard"), 0.4)\nexcept asyncio.TimeoutError:\n    answer = "no idea"', 'note = await say("A note")'],
        {"Think hard": ("forty-two", "forty-two", 0.02, 1.0), "A note": ("ok", "okay")},
        "answer == 'forty-two'", [["call 1"]],  # it was given up: the reply itself is not on the bad tape
    ),
    sdk(
        "a-default-that-was-changed", "code",
        [CLAUDE, "def chosen(votes, least=3):\n    return max(votes, key=votes.get) if max(votes.values()) >= least else None",
         'votes = {}\nfor n in range(4):\n    said = say(f"Vote {n}")\n    votes[said] = votes.get(said, 0) + 1', "winner = chosen(votes)"],
        {f"Vote {n}": (("a", "b", "a", "c")[n],) * 2 for n in range(4)},
        "winner == 'a'", [["code:3"]],
        good_cells={3: "def chosen(votes, least=2):\n    return max(votes, key=votes.get) if max(votes.values()) >= least else None"},
    ),
    sdk(
        "the-good-run-asks-a-second-time", "a branch that only the good run took",
        [GPT, 'def say(text):\n    return gpt.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": text}]).choices[0].message.content',
         'draft = say("Draft a letter")', 'if "check" in draft:\n    draft = say(f"Check again: {draft}")', 'fine = draft.endswith("Regards")', 'extra = say("Title?")'],
        {"Draft a letter": ("Dear all, check", "Dear all, bye"), "Check again": ("Dear all. Regards",) * 2, "Title": ("A", "B")},
        "fine", [["model Draft"]],
    ),
    sdk(
        "either-of-two-vetoes", "competing",
        [CLAUDE, 'said = [say(f"Reviewer {n}?") for n in range(6)]', 'accepted = "accept" in (said[1], said[4])'],
        {f"Reviewer {n}?": (("accept" if n in (1, 4) else "pass"), ("reject" if n in (1, 4) else "skip")) for n in range(6)},
        "accepted", [["model Reviewer 1"], ["model Reviewer 4"]],
    ),
    sdk(
        "a-long-chain-that-went-off-early", "a chain of ten",
        [CLAUDE, 'plan = ["start"]\nfor step in range(10):\n    plan.append(say(f"After {plan[-1]}, step {step}?"))', 'end = plan[-1]'],
        {**{f"After {'start' if n == 0 else f'north{n - 1}'}, step {n}?": ((f"north{n}",) * 2 if n != 3 else ("north3", "south3")) for n in range(10)},
         **{f"After south{n - 1}, step {n}?": (f"south{n}",) * 2 for n in range(4, 10)}},
        "end == 'north9'", [["model step 3?"]],
    ),
]  # fmt: skip
assert len(SDKS) == 20, len(SDKS)
