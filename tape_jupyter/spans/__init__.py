"""A cassette or take as spans: notebook > cell run > (user span, tool) > call; what every view of
it shows.

    spans/headers.py    what each call's record says above its request, for thousands of calls at once
    tree.py     which span stands below which
    spans/titles.py    what happened in a call, in one line: read from its bodies, when its row is shown
    cassette/cell_sources.py    what a cell is called, and its source
    spans/rows.py   what calls cost, for thousands at once
    spans/rows.py    rows as columns, page by page
    details.py  one span in full; spans/formatting.py its sections, turns.py its conversation
    search.py   calls by words of their bodies
    spans/dataframe.py    rows as a pandas frame

Pure over a book that is open for reading: nothing is written, patched or decided. Texts come from
recordings and are data; what is sent to a view is JSON with caps on everything.
"""
