"""Which package, or which commit, made a recorded run come out otherwise: `tape bisect`."""
