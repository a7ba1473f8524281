"""tape-jupyter: record a notebook's LLM and tool calls once, replay them for ever."""
