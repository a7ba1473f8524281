"""Runs a notebook in replay mode in a process of its own that has nothing of ours: an empty home,
no keys, and no more than the sandbox gives it (isolation/sandbox.py). A bundle's replay and its
proof both run so.

The process is this interpreter's; the kernel in it may be another's: a bundle brings its own
packages. It reads one job from its standard input, and tells line by line, over a pipe of its own,
what cells gave.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.comparison.outputs import failure_of, shown_text
from tape_jupyter.core.own_process import without_grammars
from tape_jupyter.core.temp_dirs import scratch
from tape_jupyter.errors import BundleError, TapeError
from tape_jupyter.headless import run as headless_run
from tape_jupyter.headless.questions import KernelAnswer, ask_questions
from tape_jupyter.isolation import sandbox

if TYPE_CHECKING:
    from nbclient import NotebookClient
    from nbformat import NotebookNode

KEPT = (
    "PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "TERM", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS",
)  # fmt: skip
"""Variables of this process that the notebook's process gets; LC_* too. No others: a key may have
any name.
"""

MOST_OUTPUT = 64 << 20
"""Characters that a cell may give, where the saved notebook is small."""
PATIENCE = 10.0
"""Seconds that the process gets to put its kernel away when it is to end."""


@dataclass(frozen=True, slots=True)
class ProofJob:
    """What is run: a notebook where it lies, by the kernel of `python`, with `home` for a home.

    `take` is played instead of the recording, at this `pace`; `variables` are added to the kernel's
    environment; `timeout` is for each cell, in seconds. `before` is Python that the kernel runs
    silently before the first cell, `after` an expression whose value, a str, is wanted after the
    last. `question` is evaluated then too, as headless/questions.py does ("": the counts of calls
    alone; None: nothing is asked).
    """

    notebook: str
    home: str
    python: str = sys.executable
    take: str = ""
    pace: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    before: str = ""
    after: str = ""
    question: str | None = None


@dataclass(frozen=True, slots=True)
class ProofOutput:
    """What a code cell gave. `number` counts code cells from 1, `index` all cells from 0; outputs
    as notebooks have them. `ran` is false after a cell that raised, as with Run All, unless it had
    raised when it was saved: then those that were run after it are run, and the others are not.
    `unheld`: outputs.REMARKS.
    """

    number: int
    index: int
    title: str
    outputs: tuple[Any, ...] = ()
    seconds: float = 0.0
    ran: bool = True
    unheld: tuple[str, ...] = ()

    @property
    def raises(self) -> str:
        """The name of the exception that it ended with; "" where it did not."""
        return failure_of(self.outputs)[0]


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """A whole run; `after` is the value of the job's last expression, `ports` are those that
    Jupyter spoke to it on.
    """

    outs: tuple[ProofOutput, ...]
    after: str = ""
    ports: tuple[int, ...] = ()
    answer: KernelAnswer | None = None


Starting = Callable[[int, int, str], None]
"""Told before a cell runs: its number, how many there are, the first line of its source."""
Ran = Callable[[ProofOutput], None]


def isolated_environment(home: Path | str, python: str = sys.executable) -> dict[str, str]:
    """The whole environment of a stranger's notebook: nothing of this process but KEPT, everything
    else in `home`.
    """
    at = Path(home)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.upper() in KEPT or name.startswith("LC_")
    }
    if (
        python == sys.executable and "PYTHONPATH" in os.environ
    ):  # what makes this interpreter find tape_jupyter
        kept["PYTHONPATH"] = os.environ["PYTHONPATH"]
    variables = {
        "HOME": at, "USERPROFILE": at, "XDG_CONFIG_HOME": at / ".config", "XDG_CACHE_HOME": at / ".cache",
        "XDG_DATA_HOME": at / ".local" / "share", "XDG_RUNTIME_DIR": at / "runtime", "IPYTHONDIR": at / ".ipython",
        "JUPYTER_CONFIG_DIR": at / ".jupyter", "JUPYTER_DATA_DIR": at / ".local" / "share" / "jupyter",
        "JUPYTER_RUNTIME_DIR": at / "runtime",
    }  # fmt: skip
    path = os.pathsep.join([str(Path(python).parent), kept.get("PATH", os.defpath)])
    quiet = {
        "PYTHONNOUSERSITE": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return {
        **kept,
        **{name: str(value) for name, value in variables.items()},
        **quiet,
        "PATH": path,
    }


def run_proof(
    job: ProofJob,
    starting: Starting,
    on_cell: Ran,
    started: Callable[[int], None] = lambda _pid: None,
) -> ProcessOutcome:
    """Run the job to its end; then `on_cell` hears of each cell. `started` hears the id of the process,
    under which all others are. Raises BundleError where its kernel does not start or does not
    replay.
    """
    done: list[ProofOutput] = []
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        _start_process(job, errors, started) as messages,
    ):
        for message in messages:
            event = message.pop("event")
            if event == "starting":
                starting(message["number"], message["count"], message["title"])
            elif event == "failed":
                raise BundleError(message["why"])
            elif event == "ran":
                lists = {name: tuple(message[name]) for name in ("outputs", "unheld")}
                done.append(ProofOutput(**{**message, **lists}))
                on_cell(done[-1])
            else:
                answer = None if message["answer"] is None else KernelAnswer(**message["answer"])
                return ProcessOutcome(
                    tuple(done), message["after"], tuple(message["ports"]), answer
                )
        errors.seek(0)
        raise BundleError(
            f"the process that ran the notebook ended before it was done: {errors.read().strip()[-2000:]}"
        )


@contextmanager
def _start_process(
    job: ProofJob, errors: IO[str], started: Callable[[int], None]
) -> Iterator[Iterator[dict[str, Any]]]:
    """The driver's lines; when the block is left it is put away, and its kernel with it."""
    Path(job.home).mkdir(parents=True, exist_ok=True)
    (Path(job.home) / "runtime").mkdir(mode=0o700, exist_ok=True)
    reading, writing = os.pipe()
    arguments = [sys.executable, "-P", "-m", "tape_jupyter.bundle.proof.process", str(writing)]
    with scratch("layers") as layers:
        command = sandbox.command(arguments, layers, [Path(job.notebook).parent, Path(job.home)])
        child = subprocess.Popen(  # noqa: S603 - this interpreter
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, text=True,
            pass_fds=(writing,), env=_build_driver_environment(job), start_new_session=True, cwd=job.home,
        )  # fmt: skip
        os.close(writing)
        try:
            started(child.pid)
            with suppress(BrokenPipeError):  # it says on standard error why it ended
                _send_job(child, {**asdict(job), "variables": dict(job.variables)})
            with os.fdopen(reading, encoding="utf-8") as lines:
                yield (json.loads(line) for line in lines)
        finally:
            _stop_process(child)


def _build_driver_environment(job: ProofJob) -> dict[str, str]:
    """Of the driver, which imports this tape_jupyter whatever the kernel's is."""
    env = isolated_environment(job.home)
    return {**env, "PATH": os.environ.get("PATH", os.defpath)}


def _send_job(child: subprocess.Popen[str], job: dict[str, Any]) -> None:
    if child.stdin is not None:
        with child.stdin as stdin:
            stdin.write(json.dumps(job))


def _stop_process(child: subprocess.Popen[str]) -> None:
    """It is asked first, so that it ends its kernel; then its whole group goes."""
    if child.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(PATIENCE)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


# ---------------------------------------------------------------- in the process


def main() -> None:
    """The driver: argument 1 is the pipe to tell on."""
    without_grammars()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as pipe:

        def send_event(event: str, **fields: Any) -> None:
            pipe.write(json.dumps({"event": event, **fields}) + "\n")
            pipe.flush()

        try:
            job = ProofJob(**json.load(sys.stdin))
            ports: list[int] = []
            outs, answer = _run_cells(
                job,
                lambda number, count, title: send_event(
                    "starting", number=number, count=count, title=title
                ),
                ports,
            )
            for out in outs:
                send_event("ran", **asdict(out))
            answer_record = None if answer is None else asdict(answer)
            send_event("done", after=_read_after(job), ports=ports, answer=answer_record)
        except (TapeError, RuntimeError, OSError) as error:
            send_event("failed", why=str(error))
        except KeyboardInterrupt:
            sys.exit(130)


def kernel_options(take: str, pace: str) -> str:
    """What the kernel is told of a take and a pace (TAPE_OPTIONS)."""
    options = {"--take": take, "--pace": pace}
    return " ".join(f"{name} {value}" for name, value in options.items() if value)


def _run_cells(
    job: ProofJob, starting: Starting, ports: list[int]
) -> tuple[list[ProofOutput], KernelAnswer | None]:
    """Every code cell, with its outputs as they stand when the last has run; and what was asked
    then.
    """
    from tape_jupyter.headless.kernel import start_kernel

    path = Path(job.notebook)
    notebook = headless_run.read_notebook(path)
    cells = [
        (index, cell) for index, cell in enumerate(notebook.cells) if headless_run.has_code(cell)
    ]
    env = {
        **isolated_environment(job.home, job.python),
        "PYTHONHASHSEED": hash_seed(path),
        **job.variables,
    }
    if options := kernel_options(job.take, job.pace):
        env["TAPE_OPTIONS"] = options
    unrun = {index for index, cell in cells if never_run(cell, notebook)}
    ends: dict[int, headless_run.CellEnd] = {}
    stopped = raised = False
    answer = None
    with start_kernel(notebook, path, "replay", job.timeout, env, job.python) as client:
        ports += client.km.ports if client.km else []
        client.most_output = max(MOST_OUTPUT, 4 * path.stat().st_size)
        _run_silently(client, job.before)
        for number, (index, cell) in enumerate(cells, 1):
            title = headless_run.first_line(cell.source)
            if stopped or (raised and index in unrun):
                continue
            starting(number, len(cells), title)
            raised_before = bool(failure_of(cell.outputs)[0])
            raised = raised or raised_before
            ends[index] = headless_run.execute_cell(client, cell, index)
            if client.overflowing_cell is not None:
                raise BundleError(
                    f"cell {number} gave more than {client.most_output >> 20} MiB of output, and far more "
                    "than the notebook holds: the run was stopped"
                )
            stopped = ends[index].raised and not raised_before
        if job.after:
            _run_silently(
                client,
                f"__import__('pathlib').Path({str(_find_handed_path(job))!r}).write_text({job.after}, 'utf-8')",
            )
        headless_run.merge_streams(notebook)
        if job.question is not None:
            cell_outputs = [cell.outputs if index in ends else [] for index, cell in cells]
            answer = ask_questions(client, job.question, [*map(shown_text, cell_outputs)])
    return [
        _build_out(number, index, cell, ends.get(index))
        for number, (index, cell) in enumerate(cells, 1)
    ], answer


def _build_out(
    number: int, index: int, cell: NotebookNode, end: headless_run.CellEnd | None
) -> ProofOutput:
    title = headless_run.first_line(cell.source)
    if end is None:
        return ProofOutput(number, index, title, ran=False)
    return ProofOutput(number, index, title, tuple(cell.outputs), end.seconds, unheld=end.unheld)


def never_run(cell: NotebookNode, notebook: NotebookNode) -> bool:
    """Whether the saved cell was not run, as those after one that raised in a Run All: others have
    their count.
    """
    code = [each for each in notebook.cells if each.cell_type == "code"]
    counted = any(each.get("execution_count") is not None for each in code)
    return counted and cell.get("execution_count") is None and not cell.get("outputs")


def hash_seed(notebook: Path) -> str:
    """PYTHONHASHSEED as it was while recording (the newest run that knows it), so that sets are in
    the same order; "0", as headless/run.py records, where no run knows.
    """
    for path in paths.cassettes_in(paths.folder(notebook)):
        with suppress(TapeError):
            for run in reversed(Cassette.open(path).runs):
                kit = run.get("kit")
                environment = kit.get("environment") if isinstance(kit, Mapping) else None
                seed = (
                    environment.get("PYTHONHASHSEED") if isinstance(environment, Mapping) else None
                )
                if isinstance(seed, str) and seed.isdecimal():
                    return seed
    return "0"


def _run_silently(client: NotebookClient, source: str) -> None:
    """Run what is no cell. Raises BundleError where it raises."""
    if not source:
        return
    from tape_jupyter.headless.kernel import ask_kernel

    reply = ask_kernel(client, source)
    if reply.get("status") != "ok":
        raise BundleError(
            f"the kernel could not be asked: {reply.get('ename')}: {reply.get('evalue')}"
        )


def _find_handed_path(job: ProofJob) -> Path:
    """Where the kernel leaves the value of `after`: of any size, which a message is not."""
    return Path(job.home) / "runtime" / "after"


def _read_after(job: ProofJob) -> str:
    return _find_handed_path(job).read_text("utf-8") if job.after else ""


if __name__ == "__main__":
    main()
