"""What is written for a take: its own file and nothing else, whoever makes it at the same time."""

import threading

import pytest

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import CassetteError
from tape_jupyter.secrets.registry import Secrets
from tests.harness.tapes import Recorder, answered, asked, churn


def test_a_cassette_itself_takes_no_override(tmp_path):
    main = Cassette.open(churn(tmp_path))
    before = main.path.read_bytes()
    with pytest.raises(CassetteError, match="cannot be overridden here: this is not a take"):
        main.append_override(main.calls[0], answered("x"), {}, Secrets())
    assert main.path.read_bytes() == before


def test_two_who_make_the_same_take_at_once_share_it(tmp_path):
    path = churn(tmp_path)
    tapes = [Cassette.open(path) for _ in range(2)]
    takes = [tape.take("t") for tape in tapes]
    takes[0].override(tapes[0].calls[1], reply=answered("East"))
    takes[1].override(tapes[1].calls[2], value=7)
    for take in (*takes, Cassette.open(takes[0].path)):
        take.refresh()
        assert len(take.overrides) == 2 and take.path.read_text().count("take of:") == 1


def test_a_call_that_the_take_that_is_there_does_not_hold_is_not_overridden_in_it(tmp_path):
    path = churn(tmp_path)
    early = Cassette.open(path)
    small = early.override(early.calls[2], value=1, take="other")
    Recorder(path, "s9").run("cccc", (asked("new"), answered("yes")))
    late = Cassette.open(path)
    late_take, new = late.take("t"), late.calls[-1]
    small.path.rename(late_take.path)  # another kernel was faster, and began with less
    with pytest.raises(CassetteError, match="does not hold it"):
        late_take.append_override(new, answered("x"), {}, Secrets())


def test_many_threads_override_into_one_take(tmp_path):
    path = tmp_path / "m.tape.yaml"
    Recorder(path).run("aaaa", *((asked(f"q{n}"), answered(f"a{n}")) for n in range(20)))
    main = Cassette.open(path)
    take = main.take("t")
    threads = [
        threading.Thread(
            target=take.append_override, args=(entry, answered(f"b{n}"), {"at": "now"}, Secrets())
        )
        for n, entry in enumerate(main.calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Cassette.open(take.path, check="whole").overrides) == 20


def test_a_secret_in_an_answer_is_masked(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "sk-live-0123456789abcdef")
    main = Cassette.open(churn(tmp_path))
    take = main.override(main.calls[1], reply='{"key": "sk-live-0123456789abcdef"}', take="t")
    assert "0123456789abcdef" not in take.path.read_text()
    assert b"<secret:SHOP_API_KEY>" in Cassette.open(take.path).calls[1].reply().body
