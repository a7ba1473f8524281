"""A tool changes objects of libraries and puts new ones into them: replay has the same, in place."""

from __future__ import annotations

import argparse
import configparser
import ctypes
import email.message
import http.cookies
import io
from xml.dom import minidom
from xml.etree import ElementTree

import bs4
import networkx
import pydantic
import pytest
import requests
from sortedcontainers import SortedDict

import tape_jupyter as tape
from tape_jupyter.effects.redoing import Redo
from tape_jupyter.effects.scope import Scope
from tests.harness.tool_runs import ran as bodies
from tests.harness.tool_runs import replayed, same
from tests.programs.test_hidden_state import in_a_folder_of_its_own, program_of  # noqa: F401


def parse_page():
    return bs4.BeautifulSoup("<body><p class='x'>hi <b>you</b></p><p>two</p></body>", "html.parser")


def change_page(page):
    note = page.new_tag("i", id="n")
    note.string = "new"
    page.body.append(note)
    page.p["class"] = ["y"]
    page.b.string = "them"


def look_at_page(page):
    first, second = page.find_all("p")
    links = (
        page.i.parent is page.body,
        page.i.previous_sibling is second,
        first.b.string.parent is page.b,
    )
    return str(page), [str(each) for each in page.descendants], links


def change_document(document):
    child = document.createElement("c")
    child.setAttribute("k", "v")
    child.appendChild(document.createTextNode("text"))
    document.documentElement.appendChild(child)


def look_at_document(document):
    child = document.documentElement.lastChild
    owner = child.getAttributeNode("k").ownerElement
    return document.toxml(), owner is child, child.parentNode is document.documentElement


def change_message(message):
    message["To"] = "b@example.org"
    message.replace_header("Subject", "other")
    message.add_attachment(b"abc", maintype="text", subtype="csv", filename="a.csv")


def make_message():
    message = email.message.EmailMessage()
    message["Subject"] = "one"
    message.set_content("hello\n")
    return message


def look_at_message(message):
    addresses = [each.username for each in message["To"].addresses]
    return addresses, message["Subject"], [part.get_filename() for part in message.walk()]


def change_parser(parser):
    parser.add_argument("--many", type=int, default=3)
    parser.add_mutually_exclusive_group().add_argument("-b", action="store_true")


def look_at_config(config):
    file = io.StringIO()
    config.write(file)
    return file.getvalue(), config["b"].getint("z"), config["b"].parser is config


def change_tree(root):
    ElementTree.SubElement(root, "c", k="v").text = "text"
    root[0].set("y", "2")
    root.remove(root[1])


CHANGED = {
    "bs4": (parse_page, change_page, look_at_page),
    "minidom": (lambda: minidom.parseString("<a><b/></a>"), change_document, look_at_document),
    "email": (make_message, change_message, look_at_message),
    "argparse": (
        lambda: argparse.ArgumentParser(prog="x"),
        change_parser,
        lambda parser: (parser.format_help(), vars(parser.parse_args(["--many", "5", "-b"]))),
    ),
    "configparser": (
        configparser.ConfigParser,
        lambda config: config.read_dict({"b": {"z": "3"}}),
        look_at_config,
    ),
    "etree": (
        lambda: ElementTree.fromstring("<a><b x='1'/><q/></a>"),
        change_tree,
        ElementTree.tostring,
    ),
    "cookies": (
        lambda: http.cookies.SimpleCookie("a=1"),
        lambda cookies: cookies.load("b=2; path=/x"),
        lambda cookies: (cookies.output(), cookies["b"].value),
    ),
    "networkx": (
        dict,
        lambda box: box.update(graph=networkx.path_graph(3)),
        lambda box: (list(box["graph"].edges), box["graph"].adj[0][1] is box["graph"].adj[1][0]),
    ),
    "sortedcontainers": (
        dict,
        lambda box: box.update(rows=SortedDict(b=1, a=2)),
        lambda box: (list(box["rows"].items()), box["rows"].setdefault("c", 3), len(box["rows"])),
    ),
    "headers": (
        requests.structures.CaseInsensitiveDict,
        lambda headers: headers.update({"X-A": "1"}),
        lambda headers: headers["x-a"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
def test_what_a_tool_makes_and_puts_into_objects_of_a_library_is_there_again(name):
    assert same(program_of(*CHANGED[name]))


def test_an_object_that_a_tool_made_is_one_however_many_ways_lead_to_it():
    def program():
        page, names, kept = parse_page(), {}, []

        @tape.tool
        def work(name):
            bodies.append(name)
            tag = page.new_tag("i")
            page.body.append(tag)
            names[name] = tag
            kept.extend([tag, (tag, page.p)])
            return "ok"

        work("a")
        tag = page.i
        return [names["a"] is tag, kept[0] is tag, kept[1][0] is tag, kept[1][1] is page.p]

    assert same(program) == [True] * 4


class Node:
    def __init__(self, name, parent=None):
        self.name, self.parent, self.children = name, parent, []
        if parent is not None:
            parent.children.append(self)


def test_objects_of_the_program_that_lead_to_each_other_are_there_again():
    def look(root):
        child = root.children[0]
        return child.name, child.parent is root, child.children[0].parent is child

    assert same(program_of(lambda: Node("a"), lambda root: Node("c", Node("b", root)), look))


class Key:
    """Keeps its own hash, as attrs and sympy do: the next process has another one for it."""

    def __init__(self, name):
        self.name, self.hashed = name, None

    def __hash__(self):
        self.hashed = self.hashed or hash(self.name)
        return self.hashed

    def __eq__(self, other):
        return self.name == other.name


def test_keys_that_a_tool_made_are_found_again_and_their_kept_hashes_are_not_written(tmp_path):
    def act(table):
        table[Key("a")] = Key("b")
        hash(table[Key("a")])
        table["set"] = {Key("a")}

    look = program_of(dict, act, lambda table: (table[Key("a")].name, Key("a") in table["set"]))
    assert same(look) == ("b", True)
    assert str(hash("a")) not in (tmp_path / "a.tape.yaml").read_text()


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda: argparse.Namespace(run=lambda: 1), "a function is code"),
        (lambda: argparse.Namespace(kind=argparse.FileType), "a class is code"),
        (lambda: argparse.Namespace(it=(each for each in "ab")), "generator"),
        (lambda: [ElementTree.Element(str(n)) for n in range(5_001)], "more than 5,000 objects"),
    ],
)
def test_what_such_an_object_holds_that_cannot_be_written_is_said(made, why):
    program = program_of(dict, lambda box: box.update(a=made()), len)
    _, _, recorded, report = replayed(program)
    assert why in str(recorded.warnings) and why in str(report.unheld)


def test_what_cannot_be_written_takes_nothing_with_it_that_was_written_before():
    def act(table):
        table[Key("a")] = argparse.Namespace(kept="one")
        table[Key("b")] = argparse.Namespace(run=lambda: 1)

    def look(table):
        return {key.name: vars(made).get("kept") for key, made in table.items()}

    live, again, recorded, report = replayed(program_of(dict, act, look))
    assert (live, again) == ({"a": "one", "b": None}, {"a": "one"})
    assert "a function is code" in str(recorded.warnings) and report.unheld


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("subprocess:Popen", {"pid": 1}),
        ("tempfile:_TemporaryFileCloser", {"name": "a"}),
        ("argparse:FileType", {"_mode": "w"}),
        ("logging:FileHandler", {"baseFilename": "a"}),
        ("argparse:Namespace", {"run": {"<type>": "class", "class": "ctypes:CDLL"}}),
        (
            "argparse:Namespace",
            {"run": {"<type>": "method", "of": {"<type>": "Path", "value": "a"}, "name": "unlink"}},
        ),
    ],
)
def test_a_cassette_has_no_objects_made_that_act(kind, attributes):
    assert ctypes
    redo = Redo([{"at": "made[0]", "class": kind, "attributes": attributes}], Scope(None, {}))
    redo.run()
    assert redo.problems


class Item(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(validate_assignment=True, extra="allow")
    name: str


def test_a_model_that_validates_assignments_has_what_a_tool_gave_it_besides_its_fields():
    """pydantic puts another dict in the place of the one that holds it."""

    def program():
        item = Item(name="tea", colour="green")
        held = [item]

        @tape.tool
        def weigh(grams):
            bodies.append(grams)
            item.grams = grams
            held[0].name = f"{item.name} {grams}"
            item.model_extra["boxes"] = [grams]

        weigh(1)
        weigh(20)
        return repr(item), item.model_extra, sorted(item.model_fields_set)

    assert same(program)[1] == {"colour": "green", "grams": 20, "boxes": [20]}
