"""One trial: cells of a notebook replayed offline with these replies, and a check evaluated."""
