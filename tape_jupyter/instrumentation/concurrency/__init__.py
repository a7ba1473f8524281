"""Who calls, across threads, executors, tasks and processes."""
