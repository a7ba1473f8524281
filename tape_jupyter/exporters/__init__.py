"""A recording as the files of other systems: `tape export NB --as otlp|openinference|har|vcr|...`."""
