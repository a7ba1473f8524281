"""Long trials, each a program with options of its own; tests run a part of them."""
