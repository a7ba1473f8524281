"""One recorded call, and one whose answer a take replaces."""

from tape_jupyter.cassette.cassette import Cassette, Entry, Overridden
from tests.harness.tapes import answered, churn


def test_an_entry_knows_where_it_lies_and_reads_the_rest(tmp_path):
    path = churn(tmp_path)
    entry = Cassette.open(path).calls[0]
    assert path.read_text().splitlines()[entry.line - 1] == "---"
    assert (
        entry.order == 1
        and entry.head()["call"] == entry.id
        and repr(entry) == f"<call {entry.id} of run {entry.run}>"
    )
    assert Entry(entry.book, (0, 1), ("78a670b1-12", "r", "m", "")).order == 12


def test_what_replaces_a_call_is_found_as_the_call_is(tmp_path):
    main = Cassette.open(churn(tmp_path))
    call = main.calls[1]
    take = main.override(call, reply=answered("East"), take="t")
    (over,) = take.overrides
    assert isinstance(over, Overridden) and over.recorded.request() == call.request()
    assert (over.id, over.run, over.match, over.lineage, over.place) == (
        call.id,
        call.run,
        call.match,
        call.lineage,
        1,
    )
    assert over.replaced is over.recorded and over.by == ""
    assert take.path.read_text().splitlines()[over.line - 1 : over.line + 1] == [
        "---",
        f'override: "{call.id}"',
    ]
