"""A recorded call asked again k times, live, each answer continued from the tape: `tape sample`."""
