"""A plugin of pytest: each test file in a process of its own, several at once.

    python -m pytest -p tests.side_by_side --jobs auto

A process is a fork of one that has imported pytest and no test, so that a file has in memory what it imports itself:
what looks at all of a process's objects and modules would look at those of all files else. The files that took
longest come first. Reports are pytest's own, given on to the first process; `--jobs 0` runs all in one, as without it.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import os
import resource
import signal
import sys
import time
import traceback
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

_SECONDS = "side_by_side/seconds"
_SLOW = ("browser", "crash", "kernel", "properties")
"""Folders whose files come first where it is not known what they take."""

_WHOLE = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)
"""How pytest ends that has run or reported all that was chosen."""

_SHARED = ("hypothesis", "jupyter_client.manager", "nbclient", "nbformat", "IPython")
"""What most files import, and none minds."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--jobs", default="0", help="test files at once, each in its own process")


def pytest_configure(config: pytest.Config) -> None:
    jobs = config.getoption("jobs")
    count = min(os.cpu_count() or 1, 4) + 1 if jobs == "auto" else int(jobs)
    if count and not config.option.collectonly:
        config.pluginmanager.register(Files(config, count))


class Files:
    """Runs the files; a child's reports are this process's."""

    def __init__(self, config: pytest.Config, count: int) -> None:
        self.config, self.count = config, count
        self.seconds: dict[str, float] = config.cache.get(_SECONDS, {})
        self.children: dict[Connection, Child] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> bool:
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for module in _SHARED:
            importlib.import_module(module)
        gc.collect()
        gc.freeze()  # a child shares what is here as long as its collector does not touch it
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the children are to end, too
        from tests.harness import kernel_forks, notebook

        own = notebook.clean_env(self.config._tmp_path_factory.mktemp("kernels"))
        headless = {**os.environ, "PYTHONHASHSEED": "0"}
        # two of a test's own, with hash seeds that differ: what goes by a set's order is not to agree by luck
        with kernel_forks.serve([own, own, headless]):
            self._run_files(session)
        return True

    def _run_files(self, session: pytest.Session) -> None:
        waiting = sorted(_files(self.config.args), key=self._order)
        ends = time.monotonic() + (self.config.getoption("session_timeout", None) or float("inf"))
        try:
            while waiting or self.children:
                while waiting and len(self.children) < self.count:
                    child = Child(self.config, waiting.pop())
                    self.children[child.reports] = child
                self._take(session, ends - time.monotonic())
        finally:
            for child in self.children.values():
                child.interrupt()
            for child in self.children.values():
                child.wait_or_kill()

    def _order(self, name: str) -> tuple[float, str]:
        """The last is run first: the longest, as far as known; else as large files take longer."""
        size = Path(name).stat().st_size / 1000 if Path(name).is_file() else 0.0
        slow = any(f"tests/{folder}/" in name for folder in _SLOW)
        return (self.seconds.get(os.path.relpath(name), size + 100 * slow), name)

    def _take(self, session: pytest.Session, seconds: float) -> None:
        """What the children have to say, until one of them says something."""
        ready = wait(list(self.children), None if seconds == float("inf") else max(0.0, seconds))
        if not ready:
            running = ", ".join(child.test or child.name for child in self.children.values())
            raise session.Failed(f"the session took too long; running: {running}")
        for reports in ready:
            child = self.children[reports]
            try:
                self._report(session, child, *reports.recv())
            except EOFError:
                self._end(child)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)

    def _report(self, session: pytest.Session, child: Child, kind: str, said: Any) -> None:
        hook = self.config.hook
        if kind == "starts":
            child.test = said
        elif kind == "collected":
            session.testscollected += said
        elif kind == "deselected":
            hook.pytest_deselected(items=[SimpleNamespace()] * said)
        elif kind == "ended":
            child.is_done = said in _WHOLE or (
                said == pytest.ExitCode.INTERRUPTED and child.is_broken
            )
        else:
            report = hook.pytest_report_from_serializable(config=self.config, data=said)
            if kind == "collectreport":
                child.is_broken = report.failed
                hook.pytest_collectreport(report=report)
            else:
                hook.pytest_runtest_logreport(report=report)

    def _end(self, child: Child) -> None:
        """A child is gone: as it should, or it takes its file with it."""
        del self.children[child.reports]
        status, used = child.wait()
        self.seconds[child.name] = round(used.ru_utime + used.ru_stime, 2)
        self.config.cache.set(_SECONDS, self.seconds)
        if not child.is_done:
            where = child.test or child.name
            words = f"{where}: its process ended with {status}\n{child.printed()}"
            self.config.hook.pytest_runtest_logreport(
                report=pytest.TestReport(
                    where, (child.name, None, where), {}, "failed", words, "call"
                )
            )


def _files(args: list[str]) -> set[str]:
    """What is to be run, a file a word: the folders' files, and what is named itself."""
    return {
        str(file)
        for each in args
        for file in (sorted(Path(each).rglob("test_*.py")) if Path(each).is_dir() else [each])
    }


class Child:
    """A fork that runs one file."""

    _numbers = itertools.count()

    def __init__(self, config: pytest.Config, name: str) -> None:
        self.name, self.test = os.path.relpath(name), ""
        self.is_done = self.is_broken = False
        scratch = config._tmp_path_factory.getbasetemp() / f"file{next(self._numbers)}"
        self._output = Path(f"{scratch}.output")
        self.reports, end = Pipe(duplex=False)
        words = [each for each in config.invocation_params.args if each not in config.args]
        self._pid = os.fork()
        if not self._pid:
            self.reports.close()
            _run([*words, "--jobs=0", f"--basetemp={scratch}", name], end, self._output)
        end.close()

    def wait(self) -> tuple[int, resource.struct_rusage]:
        """How it ended, and what it and all that it waited for used."""
        _, status, used = os.wait4(self._pid, 0)
        return os.waitstatus_to_exitcode(status), used

    def printed(self) -> str:
        """The end of what it wrote itself."""
        return self._output.read_text(encoding="utf-8", errors="replace")[-3000:]

    def interrupt(self) -> None:
        """As by Ctrl-C: what its tests have started is taken down."""
        os.kill(self._pid, signal.SIGINT)

    def wait_or_kill(self) -> None:
        ends = time.monotonic() + 30
        while time.monotonic() < ends:
            if os.waitpid(self._pid, os.WNOHANG)[0]:
                return
            time.sleep(0.05)
        os.kill(self._pid, signal.SIGKILL)
        self.wait()


def _run(words: list[str], end: Connection, output: Path) -> None:
    """In the child: pytest from its beginning, with an output of its own."""
    status = 1
    os.setpgid(0, 0)  # a Ctrl-C reaches it by the first process alone, once
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        for number in (1, 2):
            written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(written, number)
            os.close(written)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        status = pytest.main(words, plugins=[Sender(end)])
        end.send(("ended", status))
        end.close()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


class Sender:
    """Gives the first process what a child's pytest reports."""

    def __init__(self, end: Connection) -> None:
        self._end = end
        self._config: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: Any) -> None:
        self._config = config
        config.workerinput = {
            "workerid": "file"
        }  # as xdist: files of the session are the first process's

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._end.send(("collected", len(session.items)))

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._end.send(("deselected", len(items)))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._end.send(("starts", nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._give("logreport", report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._give("collectreport", report)

    def _give(self, kind: str, report: Any) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._end.send((kind, data))
