"""Clock, timers and chance of user code."""
