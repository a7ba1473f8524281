"""What people read: summaries, pages, differences, lists."""
