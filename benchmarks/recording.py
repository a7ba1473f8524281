"""Recording adds at most 1.5 ms to a 20 KB call over the same call made directly, against a server on loopback."""

from __future__ import annotations

import statistics
from pathlib import Path

import peers
from harness import prose, report, rounds, workplace
from server import serving

import tape_jupyter as tape

BAR, CALLS, SIZE_WORDS = 1.5, 200, 1_400  # about 10 KB asked and 10 KB answered


def main():
    import anthropic

    with workplace() as folder, serving() as url:
        asking = anthropic.Anthropic(api_key="sk-none", base_url=url, max_retries=0)
        number = iter(range(10**9))

        def ask(calls=CALLS):
            for _ in range(calls):
                content = f"Ticket {next(number)}: {prose(next(number), SIZE_WORDS)}"
                asking.messages.create(
                    model="m", max_tokens=9, messages=[{"role": "user", "content": content}]
                )

        def ours():
            with tape.recording(folder / "ours.tape.yaml"):
                ask()

        def peer(name):
            def work():
                with peers.recorded(name, folder / f"{name}-{next(number)}.yaml"):
                    ask()

            return work

        taken = rounds({"direct": ask, "ours": ours, **{name: peer(name) for name in peers.PEERS}})

        def one():
            with tape.recording(folder / "one.tape.yaml"):
                ask(1)

        single = rounds({"direct": lambda: ask(1), "ours": one}, count=9)
        size = Path(folder / "ours.tape.yaml").stat().st_size / (8 * CALLS)
        for name in ("ours", *peers.PEERS):
            added = (
                statistics.median(a - b for a, b in zip(taken[name], taken["direct"], strict=True))
                / CALLS
                * 1e3
            )
            holds = added <= BAR if name == "ours" else None
            report(
                f"recording a 20 KB call ({name})",
                f"adds <= {BAR} ms",
                holds,
                added_ms=round(added, 3),
                record_bytes=int(size) if name == "ours" else None,
            )

        whole = (
            statistics.median(a - b for a, b in zip(single["ours"], single["direct"], strict=True))
            * 1e3
        )
        report(
            "a recorded block of one such call, with its kit and a sync of the disk",
            "no bar",
            None,
            added_ms=round(whole, 1),
        )


if __name__ == "__main__":
    main()
