"""Live: who watches is told soon, seldom, and from a thread that no call waits for."""

import threading

from tape_jupyter.jupyter.viewer import live
from tape_jupyter.session.session import TapeSession
from tape_jupyter.spans.tree import NOTHING_RUNS
from tests.harness.provider import Provider
from tests.harness.taped_cells import ask, taped


class View:
    def __init__(self):
        self.looks, self.thread, self.seen = 0, "", threading.Semaphore(0)

    def send_changes(self):
        self.looks, self.thread = self.looks + 1, threading.current_thread().name
        self.seen.release()


def test_news_reach_a_view_on_the_watchs_own_thread():
    deck, view = TapeSession(), View()
    live.updates_of(deck).add(view)
    deck.changed()
    assert view.seen.acquire(timeout=30) and view.thread == "tape views"
    live.updates_of(deck).remove(view)


def test_many_news_are_one_look():
    deck, view = TapeSession(), View()
    live.updates_of(deck).add(view)
    for _ in range(10_000):
        deck.changed()
    assert view.seen.acquire(timeout=30)
    live.updates_of(deck).remove(view)
    assert view.looks <= 5


def test_a_deck_that_nobody_watches_has_no_thread_and_tells_nobody():
    deck, view = TapeSession(), View()
    live.updates_of(deck).add(view)
    thread = live.updates_of(deck)._thread
    live.updates_of(deck).remove(view)
    thread.join(timeout=30)
    assert not thread.is_alive() and deck.watchers == []
    deck.changed()
    assert view.looks <= 1


def test_a_view_that_comes_after_the_last_one_went_is_told_too():
    deck, first, second = TapeSession(), View(), View()
    live.updates_of(deck).add(first)
    live.updates_of(deck).remove(first)
    live.updates_of(deck).add(second)
    deck.changed()
    assert second.seen.acquire(timeout=30)
    live.updates_of(deck).remove(second)


def test_each_deck_has_one_watch():
    one, two = TapeSession(), TapeSession()
    assert live.updates_of(one) is live.updates_of(one) is not live.updates_of(two)


def test_what_runs_is_pending_in_its_own_cassette_only(tmp_path):
    deck = TapeSession()
    path = tmp_path / "main.tape.yaml"
    assert live.pending(None, path) is NOTHING_RUNS
    with Provider() as provider, taped(deck, "record", path) as running:
        assert live.pending(running.cell, path) is NOTHING_RUNS  # nothing is on the tape yet
        ask(provider, "one")
        pending = live.pending(running.cell, path)
        assert pending.run == running.cell.recording.run and pending.calls == [] and pending.now > 0
        assert live.pending(running.cell, tmp_path / "other.tape.yaml") is NOTHING_RUNS
    assert not running.cell.recording.going
