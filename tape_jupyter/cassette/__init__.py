"""The cassette on disk: records, index, journal, the text it refers to, and what is read from it."""
