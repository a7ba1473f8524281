"""WebSocket clients."""
