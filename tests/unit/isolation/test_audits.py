"""What listens to audit events harms nobody, and does not hear itself."""

import sys
import threading

from tape_jupyter.core.audit_listener import Listener

heard = []


def open_and_fail(event, args):
    if event == "open" and "test_audits" in str(args[0]):
        heard.append((threading.get_ident(), args[0]))
        with open(__file__) as file:
            file.readline()
        raise RuntimeError("told, and fails")


LISTENER = Listener(open_and_fail)
ADDED = []


def listen():
    if not ADDED:  # a hook cannot be taken away again
        ADDED.append(True)
        sys.addaudithook(LISTENER.handle_event)
    heard.clear()


def read():
    with open(__file__) as file:
        return file.readline()


def test_a_listener_that_opens_files_and_fails_hears_each_open_once_and_nobody_notices():
    listen()
    assert read().startswith('"""') and read()
    assert [path for _, path in heard] == [__file__, __file__]


def test_what_it_does_itself_is_not_heard_and_what_other_threads_do_meanwhile_is():
    listen()
    with LISTENER.deaf():
        read()
        other = threading.Thread(target=read)
        other.start()
        other.join()
    assert [thread for thread, _ in heard] == [other.ident]
    read()
    assert len(heard) == 2
