"""Tools: functions of the user's, found, wrapped, replayed."""
