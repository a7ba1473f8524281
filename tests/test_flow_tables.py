"""Arrays and frames, as fingerprints see them."""

import numpy as np
import pandas as pd

from tape_jupyter.flow import tables


def test_a_view_tells_its_owner():
    a = np.zeros(4)
    assert id(a) in tables.look("numpy", a[1:]).ids


def test_a_frame_gives_buffers_and_texts():
    table = tables.look("pandas", pd.DataFrame({"n": [1, 2], "c": pd.Categorical(["x", "y"])}))
    assert table.head.startswith("frame (2, 2)") and table.buffers


def test_a_masked_column_is_seen_where_a_value_goes_missing():
    one, other = (tables.look("pandas", pd.Series(v, dtype="Int64")) for v in ([1, 2], [1, None]))
    assert [bytes(b) for b in one.buffers] != [bytes(b) for b in other.buffers]


def test_what_is_no_table_is_none():
    assert tables.look("json", {}) is None
