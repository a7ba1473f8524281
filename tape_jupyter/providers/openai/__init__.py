"""OpenAI's Chat Completions and Responses APIs, and those that follow them."""
