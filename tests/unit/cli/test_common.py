"""What every command says and does alike: its options, its progress, its exit code."""

import os
import signal

import click
import pytest
from click.testing import CliRunner

from tape_jupyter.cli.common import StepProgress, ended, handled
from tape_jupyter.errors import TapeUsageError
from tests.harness.terminal import terminal


@pytest.mark.parametrize(
    ("does", "code"),
    [(None, 0), (1, 1), (TapeUsageError("mend it"), 2), (KeyboardInterrupt(), 130)],
)
def test_the_exit_code_says_how_it_went(does, code):
    @click.command()
    @handled
    def command():
        if isinstance(does, BaseException):
            raise does
        return does

    done = CliRunner().invoke(command)
    assert done.exit_code == code
    assert "Traceback" not in done.output


def test_steps_of_a_long_work_are_told_on_stderr_only(capsys):
    with StepProgress() as steps:
        steps.show_step("replaying [cell] 1", 1, 3)
        steps.show_step("packing")
    assert not capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_is_an_interrupt_and_handlers_are_put_back(number):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), ended():
        os.kill(os.getpid(), number)
        signal.pause()
    assert signal.getsignal(number) is before


def test_a_step_that_cannot_be_counted_does_not_show_the_count_of_the_step_before(monkeypatch):
    with terminal(monkeypatch) as shown:
        with StepProgress() as steps:
            steps.show_step("records", 17, 17)
            steps.show_step("writing [it]")
        last = shown().rpartition("writing [it]")[2]
    assert "0/?" in last and "17" not in last
