"""HTTP bodies and WebSocket messages as readable text, and back to the byte."""
