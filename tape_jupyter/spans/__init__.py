"""Store room: a cassette or take as spans: notebook > cell run > (user span, tool) > call; what every view of it shows.

    heads.py    what each call's record says above its request, for thousands of calls at once
    tree.py     which span stands below which
    names.py    what happened in a call, in one line: read from its bodies, when its row is shown
    cells.py    what a cell is called, and its source
    prices.py   what calls cost, for thousands at once
    pages.py    rows as columns, page by page
    details.py  one span in full; parts.py its sections, turns.py its conversation
    search.py   calls by words of their bodies
    frame.py    rows as a pandas frame

Pure over a book that is open for reading: nothing is written, patched or decided. Texts come from recordings and are
data; what is sent to a view is JSON with caps on everything.
"""
