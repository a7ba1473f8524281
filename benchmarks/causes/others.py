"""Causes unlike those of cases.py, written after the search was done and never used to change it."""

from benchmarks.causes.cases import Case


def other(name, kind, cells, says, check, minimal, **more):
    return Case(name, kind, cells, says, check, minimal, folder="others", **more)


OTHERS = [
    other(
        "loop-until-done",
        "loop of another length",
        [
            'log = []\nwhile len(log) < 9:\n    log.append(ask(f"Round {len(log)}"))\n    if log[-1] == "done":\n        break',
            "count = len(log)",
        ],
        {
            "Round 0": ("go", "go on"),
            "Round 1": ("more", "done"),
            "Round 2": ("even more", "?"),
            "Round 3": ("done", "?"),
        },
        "count == 4",
        [["model Round 1"]],
    ),
    other(
        "json-with-fallback",
        "swallowed error",
        [
            'def read(text):\n    try:\n        return json.loads(text)\n    except ValueError:\n        return {"level": 0}',
            'a, b, c = (read(ask(f"Report {n}")) for n in range(3))',
            'level = a["level"] + b["level"] + c["level"]',
        ],
        {
            "Report 0": ('{"level": 1}', '{"level": 1, "by": "x"}'),
            "Report 1": ('{"level": 2}', '{"level": 2'),
            "Report 2": ('{"level": 3}', '{"level":3}'),
        },
        "level == 6",
        [["model Report 1"]],
    ),
    other(
        "a-frame-from-a-tool",
        "table in a tool",
        [
            'import pandas as pd\n@tape.tool\ndef sales(year):\n    good = os.environ["WORLD"] == "good"\n'
            '    return pd.DataFrame({"region": ["N", "S", "W"], "sold": [10.0, 20.0 if good else 2.0, 5.0], "note": ["a", "b" if good else "B", "c"]})',
            "frame = sales(2026)\nold = sales(2025)",
            'top = frame.loc[frame["sold"].idxmax(), "region"]',
        ],
        {},
        "top == 'S'",
        [["tool sales 1"]],
    ),
    other(
        "nearest-vector",
        "numbers in a tool",
        [
            '@tape.retrieval\ndef embed(text):\n    shift = 0.0 if os.environ["WORLD"] == "good" else 0.3\n    return [len(text) / 10 + (shift if "cat" in text else 0.0), text.count("a") / 5]',
            'vectors = {t: embed(t) for t in ("cat", "dog", "llama")}',
            'def gap(a, b):\n    return sum((x - y) ** 2 for x, y in zip(a, b))\nquery = embed("hat")',
            "best = min(vectors, key=lambda t: gap(vectors[t], query))",
        ],
        {},
        "best == 'cat'",
        [["retrieval embed 1"]],
    ),
    other(
        "a-closure-remembers",
        "closure",
        [
            'def counter():\n    seen = {}\n    def hear(text):\n        said = ask(f"Topic of: {text}")\n        seen[said] = seen.get(said, 0) + 1\n        return seen\n    return hear\nhear = counter()',
            'hear("the bus is late")',
            'hear("trains are slow")',
            'seen = hear("I like tea")',
        ],
        {"bus": ("travel", "travel"), "trains": ("travel", "trains"), "tea": ("food", "drinks")},
        "seen.get('travel') == 2",
        [["model trains"]],
    ),
    other(
        "a-tool-that-raises",
        "exception in a tool",
        [
            '@tape.tool\ndef stock(item):\n    if item == "lamp" and os.environ["WORLD"] == "bad":\n        raise ConnectionError("no answer")\n    return 4',
            'left = {}\nfor item in ("desk", "lamp", "sofa"):\n    try:\n        left[item] = stock(item)\n    except ConnectionError:\n        left[item] = 0',
            "offer = [k for k, v in left.items() if v]",
        ],
        {},
        "'lamp' in offer",
        [["tool stock 2"]],
    ),
    other(
        "a-lazy-generator",
        "asked in a later cell",
        [
            'answers = (ask(f"Item {n}") for n in range(6))',
            "first = [next(answers) for _ in range(2)]",
            "rest = list(answers)",
            'flags = [a for a in first + rest if a.startswith("!")]',
        ],
        {"Item 3": ("!hot", "hot"), "Item 5": ("cold", "cool")},
        "flags == ['!hot']",
        [["model Item 3"]],
    ),
    other(
        "three-of-five",
        "threshold over replies",
        ['yes = sum(ask(f"Member {n}") == "yes" for n in range(5))', "carried = yes >= 3"],
        {
            "Member 0": ("yes", "yes"),
            "Member 1": ("yes", "no"),
            "Member 2": ("no", "never"),
            "Member 3": ("no", "not me"),
            "Member 4": ("yes", "No"),
        },
        "carried",
        [["model Member 1", "model Member 4"]],
    ),
    other(
        "one-score-of-a-ranking",
        "ranking",
        [
            'scores = {name: float(ask(f"Score of {name}")) for name in ("ada", "bob", "cyd", "dan", "eve")}',
            "ranking = sorted(scores, key=scores.get, reverse=True)",
        ],
        {
            "ada": ("0.91", "0.90"),
            "bob": ("0.42", "0.95"),
            "cyd": ("0.77", "0.78"),
            "dan": ("0.10", "0.12"),
            "eve": ("0.33", "0.31"),
        },
        "ranking[0] == 'ada'",
        [["model bob"]],
    ),
    other(
        "a-clock-and-a-reply",
        "joint of clock and reply",
        [
            "from datetime import datetime\ntoday = datetime.now().date().isoformat()",
            'due = ask("When is it due?")',
            "late = due < today",
        ],
        {"due": ("2026-03-02", "2026-02-01")},
        "not late",
        [["clock:2", "model due"]],
        clocks={2: ("2026-03-01T10:00:00", "2026-03-05T10:00:00")},
    ),
    other(
        "code-and-a-reply",
        "joint of code and reply",
        ['score = float(ask("Confidence"))', "passed = score >= 0.9", 'talk = ask("Small talk")'],
        {"Confidence": ("0.7", "0.4")},
        "passed",
        [["code:3", "model Confidence"]],
        good_cells={3: "passed = score >= 0.6"},
    ),
    other(
        "a-tool-inside-a-tool",
        "nested tools",
        [
            '@tape.tool\ndef rate(currency):\n    return 1.1 if os.environ["WORLD"] == "good" else 1.0\n@tape.tool\ndef convert(amount, currency):\n    return round(amount * rate(currency), 2)',
            'bill = convert(100, "EUR")\ntip = convert(10, "EUR")',
            'text = ask("Thank them")',
        ],
        {},
        "bill == 110.0",
        [["tool convert 1"], ["tool rate 1"]],
    ),
    other(
        "a-cache-by-reply",
        "cache",
        [
            'cache = {}\ndef cached(text):\n    key = ask(f"Normalise: {text}")\n    if key not in cache:\n        cache[key] = ask(f"Expand: {key}")\n    return cache[key]',
            'one = cached("NYC")',
            'two = cached("New York")',
            'three = cached("Rome")',
            "same = one is two",
        ],
        {
            "Normalise: NYC": ("new york", "new york"),
            "Normalise: New York": ("new york", "newyork"),
            "Normalise: Rome": ("rome", "roma"),
        },
        "same",
        [["model Normalise: New York"]],
    ),
    other(
        "half-a-swap-is-unknown",
        "unresolved halves",
        [
            'a = ask("Left half")',
            'b = ask("Right half")',
            'joined = ask(f"Join <{a}|{b}>")',
            'decoy = ask("Weather")',
        ],
        {
            "Left": ("l1", "l2"),
            "Right": ("r1", "r2"),
            "<l1|r1>": ("whole", "whole"),
            "<l2|r2>": ("broken", "broken"),
        },
        "joined == 'whole'",
        [["model Left", "model Right"]],
    ),
    other(
        "a-word-in-a-long-text",
        "one sentence",
        [
            'essay = ask("Essay on tides")',
            'quiz = ask("Quiz")',
            'mentions = "the moon" in essay and essay.count(".") >= 4',
        ],
        {
            "Essay": (
                "Tides rise. They fall. They follow the moon. Ships wait. Sand stays.",
                "Tides rise high. They fall low. They follow the wind. Ships wait. Sand stays.",
            )
        },
        "mentions",
        [["model Essay"]],
    ),
]
assert len(OTHERS) == 15, len(OTHERS)
