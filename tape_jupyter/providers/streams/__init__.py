"""Replies of a model taken apart and put together again: a file a wire, and what they share.

Each wire's file has

    read(events) -> message        what the stream amounts to, in the provider's own shape of a whole reply
    rewrite(events, message)       the stream that amounts to `message`: events of what did not change are the
                                   recorded ones, byte for byte; a changed text is cut over the
                                   events that held it
    compose(message, like)         a whole stream made from the message alone (`like`: whose line style it takes)

Pure; what cannot be told apart is kept as it is.
"""
