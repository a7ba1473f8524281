"""Twenty causes of kinds that neither cases.py nor others.py has, kept aside: the search was written before them."""

from itertools import combinations

from benchmarks.causes.cases import Case


def aside(name, kind, cells, says, check, minimal, **more):
    return Case(name, kind, cells, says, check, minimal, folder="aside", **more)


MESSAGE = """def message(text, **more):
    body = {"model": "claude-sonnet-4-5", "max_tokens": 200, "messages": [{"role": "user", "content": text}], **more}
    request = urllib.request.Request("http://127.0.0.1:8907/v1/messages", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    return urllib.request.urlopen(request)"""
AGENT = """@tape.tool
def lookup(city):
    return {"Paris": 2.1, "Perth": 2.3, "Porto": 0.2}[city]
@tape.tool
def convert(number, unit):
    return f"{number * 1000:g} {unit}"
trail = []
city = ask("Which city is meant?")
trail.append(lookup(city))
unit = ask(f"Unit for {trail[-1]}?")
trail.append(convert(trail[-1], unit))"""
FOUR_OF_EIGHT = [[f"model Sensor {n}." for n in chosen] for chosen in combinations(range(8), 4)]

ASIDE = [
    aside(
        "joint-of-four",
        "joint of four",
        [
            'digits = [ask(f"Wheel {n}.") for n in range(14)]',
            'lock = "".join(digits[n] for n in (0, 5, 6, 13))',
        ],
        {
            "Wheel 0.": ("4", "1"),
            "Wheel 5.": ("2", "1"),
            "Wheel 6.": ("7", "1"),
            "Wheel 13.": ("9", "1"),
        },
        "lock == '4279'",
        [["model Wheel 0.", "model Wheel 5.", "model Wheel 6.", "model Wheel 13."]],
    ),
    aside(
        "any-four-of-eight",
        "threshold with many minimal sets",
        ['on = sum(ask(f"Sensor {n}.") == "on" for n in range(8))', "alarm = on >= 4"],
        {f"Sensor {n}.": ("on", "off") for n in range(8)},
        "alarm",
        FOUR_OF_EIGHT,
    ),
    aside(
        "one-of-two-and-a-third",
        "competing within a joint",
        [
            'a, b, c = (ask(f"Opinion {n}.") for n in range(3))',
            'idle = [ask(f"Chatter {n}.") for n in range(5)]',
            'go = "yes" in (a, b) and c == "yes"',
        ],
        {f"Opinion {n}.": ("yes", "no") for n in range(3)},
        "go",
        [["model Opinion 0.", "model Opinion 2."], ["model Opinion 1.", "model Opinion 2."]],
    ),
    aside(
        "good-things-that-cancel",
        "not monotone",
        [
            'signs = [int(ask(f"Charge {n}.")) for n in range(6)]',
            "total = sum(signs)",
        ],
        {
            "Charge 0.": ("1", "0"),
            "Charge 1.": ("-1", "0"),
            "Charge 2.": ("2", "0"),
            "Charge 3.": ("-2", "0"),
            "Charge 4.": ("5", "0"),
            "Charge 5.": ("3", "3"),
        },
        "total == 8",
        [["model Charge 4."]],
    ),
    aside(
        "the-same-prompt-six-times",
        "the fourth of equal requests",
        [
            'tosses = [ask("Toss.") for _ in range(6)]',
            "fourth = tosses[3]",
        ],
        {},
        "fourth.startswith('Noted')",
        [["call 4"]],
    ),
    aside(
        "a-part-of-a-stream",
        "streamed reply",
        [
            MESSAGE,
            'parts = []\nfor line in message("Tell a story, streamed", stream=True):\n'
            '    if line.startswith(b"data: ") and b"text_delta" in line:\n'
            '        parts.append(json.loads(line[6:])["delta"]["text"])',
            'title = ask("A title")',
            'tale = "".join(parts)',
        ],
        {
            "Tell a story": (
                "Once a fox ran. It found gold. The end.",
                "Once a fox ran. It found coal. Fin.",
            )
        },
        "'gold' in tale",
        [["model Tell a story"]],
    ),
    aside(
        "cut-off-at-the-limit",
        "stop reason",
        [
            MESSAGE,
            'told = [json.load(message(f"Chapter {n}.")) for n in range(5)]',
            'whole = [t["stop_reason"] for t in told]',
        ],
        {
            "Chapter 2.": (
                {"text": "It rained.", "stop_reason": "end_turn"},
                {"text": "It rained.", "stop_reason": "max_tokens"},
            )
        },
        "set(whole) == {'end_turn'}",
        [["model Chapter 2."]],
    ),
    aside(
        "tokens-over-a-budget",
        "usage of replies",
        [
            MESSAGE,
            'told = [json.load(message(f"Task {n}.")) for n in range(7)]',
            'used = sum(t["usage"]["output_tokens"] for t in told)',
        ],
        {
            "Task 3.": ({"text": "Done.", "tokens": 40}, {"text": "Done.", "tokens": 900}),
            "Task ": ({"text": "Done.", "tokens": 50}, {"text": "Done!", "tokens": 51}),
        },
        "used < 500",
        [["model Task 3."]],
    ),
    aside(
        "an-error-of-the-server",
        "status and a retry",
        [
            MESSAGE,
            'import urllib.error\ndef patient(text):\n    try:\n        return json.load(message(text))["content"][0]["text"]\n'
            '    except urllib.error.HTTPError:\n        return ask(f"Shorter, {text[:6]}")',
            'notes = [patient(f"Page {n}.") for n in range(4)]',
        ],
        {
            "Shorter, Page 2": ("short", "short"),
            "Page 2.": ({"text": "a long note"}, {"text": "overloaded", "status": 529}),
        },
        "notes[2] == 'a long note'",
        [["model Page 2."]],
    ),
    aside(
        "the-agent-takes-another-city",
        "calls that only one side made",
        [AGENT, 'idle = ask("Weather")', 'answer = f"{city}: {trail[-1]}"'],
        {"Which city": ("Porto", "Perth"), "Unit for": ("people", "people")},
        "answer == 'Porto: 200 people'",
        [["model Which city"]],
    ),
    aside(
        "a-router-and-its-branch",
        "branch with a joint cause",
        [
            'route = ask("Route this: refund or sale?")',
            'if route == "refund":\n    limit = ask("Refund limit?")\n    reason = ask("Refund reason?")\n'
            'else:\n    limit = ask("Sale limit?")\n    reason = ask("Sale reason?")',
            'sign = ask("Signature")',
            'clears = route == "refund" and sign == "Ann"',
        ],
        {"Route": ("refund", "sale"), "Signature": ("Ann", "Bob")},
        "clears",
        [["model Route", "model Signature"]],
    ),
    aside(
        "two-of-a-pool-of-threads",
        "thread pool",
        [
            "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n"
            '    marks = list(pool.map(lambda n: ask(f"Mark {n}."), range(12)))',
            "best = marks[3] + marks[10]",
        ],
        {"Mark 3.": ("A", "C"), "Mark 10.": ("B", "D")},
        "best == 'AB'",
        [["model Mark 3.", "model Mark 10."]],
    ),
    aside(
        "one-of-a-gather",
        "asyncio",
        [
            'import asyncio\nasync def later(n):\n    return await asyncio.to_thread(ask, f"Leg {n}.")\n'
            "legs = await asyncio.gather(*(later(n) for n in range(9)))",
            "longest = max(legs, key=len)",
        ],
        {"Leg 6.": ("a very long leg, the longest of them all", "short")},
        "longest.startswith('a very')",
        [["model Leg 6."]],
    ),
    aside(
        "a-comma-for-a-point",
        "spelling of a number",
        [
            'prices = [ask(f"Price of lot {n}.") for n in range(6)]',
            'worth = sum(float(p.replace(",", "")) for p in prices)',
        ],
        {f"lot {n}.": (("1.250", "1,250") if n == 4 else ("2.0", "2.00")) for n in range(6)},
        "worth < 100",
        [["model lot 4."]],
    ),
    aside(
        "an-accent-in-two-letters",
        "Unicode form",
        [
            'names = [ask(f"Name {n}.") for n in range(4)]',
            'desk = {"Zo\\u00eb": 7, "Ann": 3}.get(names[1])',
        ],
        {
            "Name 1.": ("Zo\u00eb", "Zoe\u0308"),
            "Name 0.": ("Bo", "Bo."),
            "Name 2.": ("Ada", "Ada."),
            "Name 3.": ("Cy", "Cy."),
        },
        "desk == 7",
        [["model Name 1."]],
    ),
    aside(
        "code-in-two-cells",
        "joint of two cells of code",
        [
            'score = int(ask("Score, 0 to 100"))',
            "scale = 1",
            "floor = 50",
            'passed = score * scale >= floor\nnote = ask("Note")',
        ],
        {"Score": ("30", "30")},
        "passed",
        [["code:3", "code:4"]],
        good_cells={3: "scale = 1.5", 4: "floor = 40"},
    ),
    aside(
        "chance-and-a-reply",
        "joint of chance and a reply",
        [
            "import random\ndraw = random.randrange(1000)",
            'wanted = ask("High or low?")',
            'won = draw < 100 and wanted == "low"',
            'talk = ask("Talk")',
        ],
        {"High or low": ("low", "high")},
        "won",
        [["chance:2", "model High or low"]],
    ),
    aside(
        "a-plan-that-is-worked-off",
        "reply that makes later requests",
        [
            'plan = json.loads(ask("Plan as JSON"))',
            'done = {step: ask(f"Do: {step}") for step in plan}',
            'verdict = ask("Judge: " + "; ".join(done.values()))',
            'idle = ask("Joke")',
        ],
        {
            "Plan as JSON": ('["mix", "bake"]', '["mix", "fry"]'),
            "Do: mix": ("mixed", "mixed"),
            "Do: bake": ("baked", "baked"),
            "Do: fry": ("burnt", "burnt"),
            "Judge: mixed; baked": ("good", "good"),
            "Judge: mixed; burnt": ("bad", "bad"),
        },
        "verdict == 'good'",
        [["model Plan as JSON"]],
    ),
    aside(
        "a-tool-that-changes-its-argument",
        "mutation by a tool",
        [
            '@tape.tool\ndef fill(form):\n    form["age"] = 41 if os.environ["WORLD"] == "good" else -1\n    form["at"] = os.environ["WORLD"]\n    return len(form)\n'
            '@tape.tool\ndef stamp(form):\n    form["stamp"] = os.environ["WORLD"]\n    return len(form)',
            'form = {"name": ask("Name")}\ncount = fill(form)\nstamp(form)',
            'valid = form["age"] > 0',
        ],
        {"Name": ("Ann", "Ann")},
        "valid",
        [["tool fill 1"]],
    ),
    aside(
        "a-schema-of-two-fields",
        "two fields of one reply",
        [
            'cards = [json.loads(ask(f"Card {n} as JSON")) for n in range(8)]',
            'ok = all(card["low"] < card["high"] for card in cards)',
        ],
        {
            f"Card {n} as": (
                ('{"low": 1, "high": 9, "by": "a"}', '{"low": 9, "high": 1, "by": "b"}')
                if n == 5
                else ('{"low": 1, "high": 9, "by": "a"}', '{"low": 2, "high": 8, "by": "b"}')
            )
            for n in range(8)
        },
        "ok",
        [["model Card 5 as"]],
    ),
]
assert len(ASIDE) == 20, len(ASIDE)
