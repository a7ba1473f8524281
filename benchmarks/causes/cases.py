"""Forty planted causes. Each is a notebook of cells, a world that is good and one that is bad, a check, and the sets that
are known to be minimal (more than one where several would each do).

`says` maps words of a prompt to what the model answers in the good and in the bad world (and how long it takes); what no
words fit is answered otherwise in each world, and matters to nothing. `minimal` names calls by `model WORDS`, `tool NAME
n`, `retrieval NAME n`, or a cell's `clock:N`, `chance:N`, `code:N` (cell 1 is the set-up).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime


@dataclass
class Case:
    name: str
    kind: str
    cells: Sequence[str]
    says: Mapping[str, tuple]
    check: str
    minimal: Sequence[Sequence[str]]
    good_cells: Mapping[int, str] = field(default_factory=dict)
    clocks: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    folder: str = "planted"

    def answer(self, asked, world):
        for words, told in self.says.items():
            if words in asked:
                said = told[0] if world == "good" else told[1]
                seconds = (told[2] if world == "good" else told[3]) if len(told) > 2 else 0.0
                return said, seconds
        noise = sum(map(ord, asked)) % 97
        return (f"Noted, {noise}." if world == "good" else f"Understood ({noise + 1})."), 0.0

    def cells_of(self, world):
        if world == "bad":
            return list(self.cells)
        return [self.good_cells.get(n, cell) for n, cell in enumerate(self.cells, 2)]

    def walls(self, world):
        at = 0 if world == "good" else 1
        return {cell: nanoseconds(both[at]) for cell, both in self.clocks.items()}


def nanoseconds(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 10**9)


TICKETS = """tickets = ["no invoice", "double charge", "late parcel", "wrong size", "broken lid", "no reply"]
labels = {ticket: ask(f"Label this ticket: {ticket}") for ticket in tickets}"""
LOOP = """steps = []
for number in range(20):
    steps.append(ask(f"Step {number}: what next?"))"""
TOOLS = """@tape.tool
def price(item):
    exact = {"tea": 3.995, "mug": 12.5, "jar": 7.25, "tin": 1.005}[item]
    return {"item": item, "price": exact if os.environ["WORLD"] == "good" else round(exact, 1)}"""
DOCS = """@tape.retrieval
def search(query):
    old = os.environ["WORLD"] == "bad"
    terms = "Returns within 14 days." if old and "return" in query else "Returns within 30 days."
    return [{"id": "doc-1", "text": terms if "return" in query else "We ship worldwide.", "score": 0.91},
            {"id": "doc-2", "text": f"About {query}, asked {'before' if old else 'now'}.", "score": 0.55}]"""
MEMORY = """class Memory:
    def __init__(self):
        self.facts = []
    def learn(self, text):
        self.facts.append(ask(f"Fact in: {text}"))
    def recall(self, word):
        return [fact for fact in self.facts if word in fact]
memory = Memory()"""

CASES = [
    # ---- one reply
    Case(
        "label-of-one-ticket",
        "single",
        [TICKETS, 'refunds = [t for t, said in labels.items() if "refund" in said]'],
        {"double charge": ("refund", "praise"), "late parcel": ("delivery", "shipping")},
        '"double charge" in refunds',
        [["model double charge"]],
    ),
    Case(
        "first-of-twenty-steps",
        "single",
        [LOOP, "first = steps[0]"],
        {"Step 0:": ("search the archive", "give up")},
        "first.startswith('search')",
        [["model Step 0:"]],
    ),
    Case(
        "last-of-twenty-steps",
        "single",
        [LOOP, "done = steps[-1]"],
        {"Step 19:": ("finish", "start again")},
        "done == 'finish'",
        [["model Step 19:"]],
    ),
    Case(
        "a-field-of-json",
        "single",
        [
            'order = json.loads(ask("Order as JSON"))',
            'total = order["amount"] * order["unit"]["price"]',
            'note = ask("Write a note")',
        ],
        {
            "Order as JSON": (
                '{"amount": 3, "unit": {"name": "box", "price": 4}, "by": "ann"}',
                '{"amount": 3, "unit": {"name": "Box", "price": 40}, "by": "bob"}',
            )
        },
        "total == 12",
        [["model Order as JSON"]],
    ),
    Case(
        "a-cell-that-raises",
        "single",
        [
            'parts = ask("Name and age, by comma")',
            'hobby = ask("A hobby")',
            'name, age = parts.split(",")\nyears = int(age)',
        ],
        {"by comma": ("Ann, 41", "Ann is 41")},
        "cell:4",
        [["model by comma"]],
    ),
    Case(
        "a-judge-among-judges",
        "single",
        [
            'votes = [ask(f"Judge {n}, is it safe?") for n in range(9)]',
            'safe = sum(v == "yes" for v in votes) >= 5',
        ],
        {
            f"Judge {n},": (
                ("yes", "yes") if n in (0, 3, 5, 7) else ("yes", "no") if n == 4 else ("no", "No.")
            )
            for n in range(9)
        },
        "safe",
        [["model Judge 4,"]],
    ),
    Case(
        "an-agent-with-history",
        "single",
        [
            'history = []\nfor turn in ("plan", "gather", "decide", "report"):\n    question = {"role": "user", "content": f"Now {turn}."}\n'
            '    said = ask(f"Now {turn}.", history)\n    history += [question, {"role": "assistant", "content": said}]',
            'final = history[-1]["content"]',
        ],
        {
            "Now plan.": ("two steps", "two steps"),
            "Now gather.": ("found: 40", "found: 14"),
            "Now decide.": ("accept 40", "reject 14"),
            "Now report.": ("We accept 40.", "We reject 14."),
        },
        '"accept" in final',
        [["model Now gather."]],
    ),
    Case(
        "a-row-of-a-table",
        "single",
        [
            'table = ask("Churn by region as a table")',
            'rows = dict([c.strip() for c in r.strip("|").split("|")] for r in table.splitlines())',
            'comment = ask("Comment on it")',
        ],
        {
            "Churn by region": (
                "| North | 0.31 |\n| South | 0.12 |\n| West | 0.20 |",
                "| North | 0.30 |\n| South | 0.45 |\n| West | 0.21 |",
            )
        },
        'max(rows, key=rows.get) == "North"',
        [["model Churn by region"]],
    ),
    # ---- joint: two
    Case(
        "both-keys-of-a-lock",
        "joint of two",
        [
            'keys = [ask(f"Key {n}") for n in range(8)]',
            'opened = keys[2] == "red" and keys[6] == "blue"',
        ],
        {"Key 2": ("red", "pink"), "Key 6": ("blue", "navy")},
        "opened",
        [["model Key 2", "model Key 6"]],
    ),
    Case(
        "sum-of-two-estimates",
        "joint of two",
        [
            'a = int(ask("Cost of labour"))',
            'b = int(ask("Cost of parts"))',
            'c = int(ask("Cost of travel"))',
            "cost = a + b + c",
        ],
        {"labour": ("40", "70"), "parts": ("30", "60"), "travel": ("9", "8")},
        "cost <= 85",
        [["model labour", "model parts"]],
    ),
    Case(
        "question-and-answer-language",
        "joint of two",
        [
            'lang = ask("Language of the customer")',
            'tone = ask("Tone of the customer")',
            'sign = ask("A signature")',
            'mail = f"{lang}/{tone}/{sign}"',
        ],
        {"Language": ("de", "fr"), "Tone": ("formal", "casual")},
        'mail.startswith("de/formal/")',
        [["model Language", "model Tone"]],
    ),
    Case(
        "a-tool-and-a-reply",
        "joint of two",
        [
            TOOLS,
            'wish = ask("Which item?")\nothers = [ask(f"Idea {n}") for n in range(4)]',
            'tea = price("tea")["price"]\nmug = price("mug")["price"]',
            'fits = tea == 3.995 and wish == "tea"',
        ],
        {"Which item?": ("tea", "jar")},
        "fits",
        [["model Which item?", "tool price 1"]],
    ),
    Case(
        "two-of-three-votes",
        "joint of two",
        ['votes = [ask(f"Voter {n}") for n in range(3)]', 'passed = votes.count("aye") == 3'],
        {"Voter 0": ("aye", "nay"), "Voter 1": ("aye", "aye"), "Voter 2": ("aye", "nay")},
        "passed",
        [["model Voter 0", "model Voter 2"]],
    ),
    Case(
        "far-apart-in-a-long-run",
        "joint of two",
        [
            'early = [ask(f"Early {n}.") for n in range(15)]',
            'late = [ask(f"Late {n}.") for n in range(15)]',
            "match = early[1] == late[13]",
        ],
        {"Early 1.": ("amber", "olive"), "Late 13.": ("amber", "ochre")},
        "match",
        [["model Early 1.", "model Late 13."]],
    ),
    # ---- joint: three
    Case(
        "three-parts-of-a-code",
        "joint of three",
        [
            'digits = [ask(f"Digit {n}") for n in range(10)]',
            "code = digits[1] + digits[4] + digits[8]",
        ],
        {"Digit 1": ("7", "0"), "Digit 4": ("3", "0"), "Digit 8": ("9", "0")},
        "code == '739'",
        [["model Digit 1", "model Digit 4", "model Digit 8"]],
    ),
    Case(
        "three-cells-agree",
        "joint of three",
        [
            'one = ask("First opinion")',
            'two = ask("Second opinion")',
            'spare = ask("A joke")',
            'three = ask("Third opinion")',
            'same = one == two == three == "go"',
        ],
        {"First": ("go", "wait"), "Second": ("go", "stop"), "Third": ("go", "no")},
        "same",
        [["model First", "model Second", "model Third"]],
    ),
    Case(
        "retrieval-tool-and-model",
        "joint of three",
        [
            DOCS,
            TOOLS,
            'found = search("how to return")[0]["text"]',
            'tin = price("tin")["price"]',
            'word = ask("Yes or no?")',
            'good = "30" in found and tin > 1 and word == "yes"',
        ],
        {"Yes or no?": ("yes", "no")},
        "good",
        [["retrieval search 1", "tool price 1", "model Yes or no?"]],
    ),
    Case(
        "product-of-three",
        "joint of three",
        ['f = [float(ask(f"Factor {n}")) for n in range(7)]', "value = f[0] * f[3] * f[5]"],
        {
            "Factor 0": ("2", "0"),
            "Factor 3": ("3", "0"),
            "Factor 5": ("5", "0"),
            "Factor 1": ("1", "2"),
            "Factor 2": ("1", "3"),
            "Factor 4": ("1", "4"),
            "Factor 6": ("1", "5"),
        },
        "value == 30",
        [["model Factor 0", "model Factor 3", "model Factor 5"]],
    ),
    # ---- competing: each of several would do
    Case(
        "either-of-two-alarms",
        "competing",
        [
            'a = ask("Sensor A")',
            'b = ask("Sensor B")',
            'c = ask("Sensor C")',
            'warned = "fire" in (a, b)',
        ],
        {"Sensor A": ("fire", "calm"), "Sensor B": ("fire", "quiet")},
        "warned",
        [["model Sensor A"], ["model Sensor B"]],
    ),
    Case(
        "one-of-five-finds-it",
        "competing",
        [
            'hits = [ask(f"Scan page {n}") for n in range(12)]',
            'found = any("leak" in hit for hit in hits)',
        ],
        {f"Scan page {n}": ("leak here" if n in (2, 5, 7) else "clean", "fine") for n in (2, 5, 7)},
        "found",
        [["model Scan page 2"], ["model Scan page 5"], ["model Scan page 7"]],
    ),
    Case(
        "a-tool-or-two-replies",
        "competing",
        [
            TOOLS,
            'jar = price("jar")["price"]',
            'p, q = ask("Left hand"), ask("Right hand")',
            'ok = jar == 7.25 or (p == "up" and q == "up")',
        ],
        {"Left hand": ("up", "down"), "Right hand": ("up", "low")},
        "ok",
        [["tool price 1"], ["model Left hand", "model Right hand"]],
    ),
    Case(
        "two-pairs",
        "competing",
        ['w = [ask(f"Word {n}") for n in range(6)]', "pair = w[0] == w[1] or w[3] == w[4]"],
        {
            "Word 0": ("sun", "moon"),
            "Word 1": ("sun", "star"),
            "Word 2": ("a", "b"),
            "Word 3": ("sea", "lake"),
            "Word 4": ("sea", "pond"),
            "Word 5": ("c", "d"),
        },
        "pair",
        [["model Word 0", "model Word 1"], ["model Word 3", "model Word 4"]],
    ),
    # ---- timing
    Case(
        "first-answer-wins",
        "timing",
        [
            'import concurrent.futures as cf\nfirst = []\nwith cf.ThreadPoolExecutor(2) as pool:\n    for name in ("north", "south"):\n'
            '        pool.submit(ask, f"Ask {name}").add_done_callback(lambda _, name=name: first.append(name))\nwinner = first[0]',
            'after = ask("Thanks")',
        ],
        {"Ask north": ("n", "n", 0.05, 0.5), "Ask south": ("s", "s", 0.5, 0.05)},
        "winner == 'north'",
        [["clock:2"]],
    ),
    Case(
        "appended-by-threads",
        "timing",
        [
            'import threading\nlog = []\ndef work(name):\n    log.append((name, ask(f"Work of {name}")))\nthreads = [threading.Thread(target=work, args=(n,)) for n in "abc"]\n'
            "for t in threads: t.start()\nfor t in threads: t.join()",
            "last = log[-1][0]",
        ],
        {
            "Work of a": ("1", "1", 0.05, 0.6),
            "Work of b": ("2", "2", 0.3, 0.3),
            "Work of c": ("3", "3", 0.6, 0.05),
        },
        "last == 'c'",
        [["clock:2"]],
    ),
    Case(
        "slow-beyond-a-limit",
        "timing",
        [
            'import time\nbegan = time.perf_counter()\nreply = ask("A slow question")\ntook = time.perf_counter() - began',
            "quick = took < 0.4",
            'more = ask("And another")',
        ],
        {"A slow question": ("same", "same", 0.02, 0.8)},
        "quick",
        [["clock:2"]],
    ),
    Case(
        "first-completed-in-asyncio",
        "timing",
        [
            'import asyncio\nasync def race():\n    tasks = {asyncio.create_task(asyncio.to_thread(ask, f"Lane {n}")): n for n in (1, 2)}\n'
            "    done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)\n    first = tasks[next(iter(done))]\n"
            "    await asyncio.gather(*left)\n    return first\nlane = await race()",
            'calm = ask("Relax")',
        ],
        {"Lane 1": ("same", "same", 0.05, 0.9), "Lane 2": ("same", "same", 0.9, 0.05)},
        "lane == 1",
        [["clock:2"]],
    ),
    # ---- a stale retrieval
    Case(
        "an-old-policy",
        "stale retrieval",
        [
            DOCS,
            'docs = search("return of goods")\nother = search("shipping")',
            "answer = ask(f\"Answer from: {docs[0]['text']}\")",
        ],
        {
            "within 30 days": ("You have 30 days.", "You have 30 days."),
            "within 14 days": ("You have 14 days.", "You have 14 days."),
        },
        '"30" in answer',
        [["retrieval search 1"]],
    ),
    Case(
        "the-second-search-is-stale",
        "stale retrieval",
        [
            DOCS,
            'a = search("opening hours")\nb = search("to return it")\nc = search("prices")',
            'days = int(b[0]["text"].split()[2])',
        ],
        {},
        "days == 30",
        [["retrieval search 2"]],
    ),
    Case(
        "stale-in-a-loop",
        "stale retrieval",
        [
            DOCS,
            'texts = [search(q)[0]["text"] for q in ("delivery", "return", "tax", "contact")]',
            'summary = ask("Sum up: " + " ".join(texts))',
        ],
        {"14 days": ("two weeks", "two weeks"), "30 days": ("a month", "a month")},
        "summary == 'a month'",
        [["retrieval search 2"]],
    ),
    # ---- a rounding in a tool
    Case(
        "rounded-price",
        "rounding in a tool",
        [
            TOOLS,
            'tea, mug = price("tea"), price("mug")',
            'total = 1000 * tea["price"]',
            'text = ask(f"Bill for {total:.0f}")',
        ],
        {},
        "round(total) == 3995",
        [["tool price 1"]],
    ),
    Case(
        "rounded-then-asked",
        "rounding in a tool",
        [
            TOOLS,
            'tin = price("tin")',
            "reply = ask(f\"Is {tin['price']} above one?\")",
            'bought = reply == "yes"',
        ],
        {"Is 1.005": ("yes", "yes"), "Is 1.0 ": ("no", "no")},
        "bought",
        [["tool price 1"]],
    ),
    Case(
        "rounded-among-many",
        "rounding in a tool",
        [
            TOOLS,
            'bill = [price(item)["price"] for item in ("mug", "tea", "tin", "mug", "tea")]',
            "cents = sum(round(100 * each) for each in bill[2:3])",
        ],
        {},
        "cents in (100, 101) and bill[2] != 1.0",
        [["tool price 3"]],
    ),
    # ---- a memory that carries over
    Case(
        "a-fact-learnt-early",
        "memory",
        [
            MEMORY,
            'memory.learn("I am allergic to nuts")\nmemory.learn("I like jazz")',
            'idle = [ask(f"Chat {n}") for n in range(5)]',
            'warned = bool(memory.recall("nuts"))',
        ],
        {"nuts": ("allergic to nuts", "likes snacks"), "jazz": ("likes jazz", "likes music")},
        "warned",
        [["model nuts"]],
    ),
    Case(
        "a-dict-that-is-updated",
        "memory",
        [
            'profile = {}\ndef update(text):\n    profile.update(json.loads(ask(f"Profile from: {text}")))',
            'update("I moved to Rome")',
            'update("I am 30")',
            'update("I sing")',
            'city = profile.get("city")',
        ],
        {
            "Rome": ('{"city": "Rome"}', '{"city": "Roma"}'),
            "I am 30": ('{"age": 30}', '{"age": 31}'),
            "I sing": ('{"hobby": "singing"}', '{"hobby": "song"}'),
        },
        "city == 'Rome'",
        [["model Rome"]],
    ),
    Case(
        "a-file-between-cells",
        "memory",
        [
            'open("notes.txt", "w").write(ask("Write down the code word"))',
            'chat = ask("Small talk")',
            'word = open("notes.txt").read()',
        ],
        {"code word": ("tulip", "rose")},
        "word == 'tulip'",
        [["model code word"]],
    ),
    # ---- the clock
    Case(
        "clock-at-midnight",
        "clock at midnight",
        [
            'from datetime import datetime\nnow = datetime.now()\ngreeting = ask("Greet")',
            "day = now.date().isoformat()",
        ],
        {},
        "day == '2026-03-01'",
        [["clock:2"]],
        clocks={2: ("2026-03-01T23:59:50", "2026-03-02T00:00:01")},
    ),
    Case(
        "a-token-that-expires",
        "clock at midnight",
        [
            'import time\nexpires = 1_772_409_600\nvalid = time.time() < expires\nstate = ask("State")',
            'use = "token" if valid else "login"',
            'more = ask("More")',
        ],
        {},
        "use == 'token'",
        [["clock:2"]],
        clocks={2: ("2026-03-01T23:00:00", "2026-03-02T00:30:00")},
    ),
    # ---- chance
    Case(
        "a-sample-of-documents",
        "chance",
        [
            'import random\npicked = random.sample(["policy", "faq", "blog", "news"], 1)\nintro = ask("Introduce")',
            'has = "policy" in picked\nprint("PICKED", has)',
        ],
        {},
        "has",
        [["chance:2"]],
    ),
    # ---- the code of a cell
    Case(
        "a-changed-prompt",
        "code",
        [
            'topic = ask("A topic")',
            'reply = ask("Answer in one word: is it safe?")',
            "short = len(reply.split()) == 1",
        ],
        {"in one word": ("Safe", "Quite safe, I would say"), "Please": ("Safe", "Safe")},
        "short",
        [["code:3"]],
        good_cells={3: 'reply = ask("Please answer: is it safe?")'},
    ),
    Case(
        "a-changed-threshold",
        "code",
        ['score = float(ask("Score from 0 to 1"))', "passed = score > 0.9", 'note = ask("A note")'],
        {"Score": ("0.8", "0.81")},
        "passed",
        [["code:3"]],
        good_cells={3: "passed = score > 0.5"},
    ),
]
assert len(CASES) == 40, len(CASES)
