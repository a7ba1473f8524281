"""What holds a cell to the tape: its clock, its sleeps, the order of its replies. Patches nothing."""
