"""Programs as people write them, recorded and replayed in this process."""
