"""A recorded request sent again, live: `tape resend NB CALL --set model=...`."""
