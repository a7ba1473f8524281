"""Why two runs of a notebook come out differently: sides, what differs, the search, the answer."""
