"""Mistral's API, which is OpenAI's Chat Completions with little differences."""
