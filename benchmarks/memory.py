"""Peak memory above the baseline while 10,000 calls are replayed: at most 30 MB. The baseline is the floor's peak."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness import ask, client, floor_client, record, report, respond_anew, say, workplace

COUNT, BAR = 10_000, 30


def peak_mb() -> float:
    """Peak resident memory of this process; unlike getrusage's it does not remember the parent's at the fork."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def run(kind: str, path: Path) -> None:
    """In a process of its own: the same calls, from memory or from the tape; prints the peak."""
    import tape_jupyter as tape

    if kind == "floor":
        ask(floor_client(respond_anew), range(COUNT))
    else:
        with tape.replaying(path):
            ask(client(), range(COUNT))
    print(peak_mb())


def measured(kind: str, path: Path) -> float:
    done = subprocess.run(
        [sys.executable, __file__, kind, str(path)], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def main():
    with workplace() as folder:
        path = folder / "a.tape.yaml"
        say(f"recording {COUNT:,} calls")
        record(path, COUNT)
        floor, ours = measured("floor", path), measured("ours", path)
        above = round(ours - floor, 1)
        report(
            "peak memory replaying 10,000 calls",
            f"<= {BAR} MB above the floor's",
            above <= BAR,
            above_mb=above,
            floor_mb=round(floor, 1),
            cassette_mb=round(path.stat().st_size / 1e6, 1),
        )


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2])) if len(sys.argv) > 1 else main()
