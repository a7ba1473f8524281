"""Open + first replay of 10,000 calls: faster than json.loads of the same calls as JSON lines in the unexpanded form."""

from __future__ import annotations

import json

from harness import ask, client, forget, ratio, record, report, rounds, say, workplace

import tape_jupyter as tape
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.cassette.cassette import Cassette

COUNT = 10_000


def main():
    with workplace() as folder:
        path, lines, asking = folder / "a.tape.yaml", folder / "a.jsonl", client()
        say(f"recording {COUNT:,} calls")
        record(path, COUNT)
        cassette = Cassette.open(path)
        with lines.open("w") as file:
            for entry in cassette.calls:
                file.write(
                    json.dumps(emitter.parse_record(cassette.text(entry.offset, entry.length)))
                    + "\n"
                )

        def ours():
            forget(path)
            with tape.replaying(path):
                ask(asking, range(1))

        def loads():
            with lines.open() as file:
                for line in file:
                    json.loads(line)

        taken = rounds({"json.loads": loads, "ours": ours})
        found = ratio(taken, "ours", "json.loads")
        report(
            "open + first replay of 10,000 calls",
            "< 1 x json.loads of JSON lines",
            found < 1,
            ratio=found,
            ms=round(min(taken["ours"]) * 1e3, 1),
        )


if __name__ == "__main__":
    main()
