"""Tools that change tables and arrays, in place and by new ones."""

from __future__ import annotations

from collections.abc import Iterator

from tests.working_agents.written import (
    ANTHROPIC,
    ANTHROPIC_LOOP,
    OPENAI,
    OPENAI_LOOP,
    RESPONSES_LOOP,
    AgentNotebook,
    cells,
    schemas,
)
from tests.harness.scripted_model import call


def notebooks() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "frame_appended_in_place",
        cells(
            OPENAI,
            f"""
import pandas as pd
QUESTION = "Enter Ada with 36 and Bob with 41."
{schemas("openai", enter="name age:integer")}
people = pd.DataFrame({{"name": ["Cy"], "age": [50]}})
view = people

def enter(name, age):
    people.loc[len(people)] = [name, age]
    return len(people)

def run_tool(name, arguments):
    return enter(**arguments)
""",
            OPENAI_LOOP,
            "print(view is people)\npeople",
            "people.age.mean()",
        ),
        [[call("enter", name="Ada", age=36)], [call("enter", name="Bob", age=41)], "Three people."],
    )
    yield AgentNotebook(
        "frame_bound_anew",
        cells(
            ANTHROPIC,
            f"""
import pandas as pd
QUESTION = "Add sales of 10 on the first and 12 on the second of May."
{schemas(add_sale="day amount:number")}
frame = pd.DataFrame({{"day": pd.to_datetime([]), "amount": pd.Series([], dtype=float)}})
versions = [frame]

def add_sale(day, amount):
    global frame
    row = pd.DataFrame({{"day": pd.to_datetime([day]), "amount": [float(amount)]}})
    frame = pd.concat([frame, row], ignore_index=True)
    versions.append(frame)
    return frame.to_dict("records")[-1]["amount"]

def run_tool(name, arguments):
    return add_sale(**arguments)
""",
            ANTHROPIC_LOOP,
            "print(frame, [len(each) for each in versions], versions[-1] is frame)",
            "frame.set_index('day').amount.sum()",
        ),
        [
            [call("add_sale", day="2026-05-01", amount=10)],
            [call("add_sale", day="2026-05-02", amount=12)],
            "22 so far.",
        ],
    )
    yield AgentNotebook(
        "frame_cleaned",
        cells(
            OPENAI,
            f"""
import pandas as pd
QUESTION = "Clean the survey: drop empty rows, add a score, sort."
{schemas("responses", drop_empty="", add_score="weight:number", sort="column")}
survey = pd.read_csv("survey.csv")
steps = pd.Series(dtype=str)
groups = {{}}

def drop_empty():
    survey.dropna(inplace=True)
    survey.reset_index(drop=True, inplace=True)
    return len(survey)

def add_score(weight):
    survey["score"] = survey.q1 * weight + survey.q2
    survey.rename(columns={{"q2": "second"}}, inplace=True)
    survey.attrs["weight"] = weight
    return list(survey.columns)

def sort(column):
    survey.sort_values(column, ascending=False, inplace=True)
    steps.loc["sort"] = column
    for town, part in survey.groupby("town"):
        groups[town] = part
    return survey.index.tolist()

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            RESPONSES_LOOP,
            "print(survey, survey.attrs, steps.to_dict(), {town: len(part) for town, part in groups.items()})",
        ),
        [
            [call("drop_empty")],
            [call("add_score", weight=0.5)],
            [call("sort", column="score")],
            "Clean.",
        ],
        files={"survey.csv": "town,q1,q2\nOslo,1,2\nRome,,3\nOslo,5,4\nRome,2,2\n"},
    )
    yield AgentNotebook(
        "arrays_in_place",
        cells(
            ANTHROPIC,
            f"""
import numpy as np
QUESTION = "Put a stone at 1,1 and 2,0, then flood row 0."
{schemas(stone="row:integer column:integer", flood="row:integer")}
board = np.zeros((3, 3), dtype=int)
top = board[0]
mask = np.ma.masked_array(np.arange(3.0), mask=False)
moves = np.array([], dtype=[("row", int), ("column", int)])

def stone(row, column):
    global moves
    board[row, column] = len(moves) + 1
    moves = np.append(moves, np.array([(row, column)], dtype=moves.dtype))
    return board.tolist()

def flood(row):
    board[row] += 10
    return int(board.sum())

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(board, moves)",
            "board[0, 0] = 99\nprint(top, np.shares_memory(top, board))",
        ),
        [
            [call("stone", row=1, column=1), call("stone", row=2, column=0)],
            [call("flood", row=0)],
            "Flooded.",
        ],
    )
    yield AgentNotebook(
        "study_of_frames",
        cells(
            OPENAI,
            f"""
import numpy as np
import pandas as pd
QUESTION = "Run the trials with 1 and 2 and compare."
{schemas("openai", trial="setting:integer", compare="")}

class Study:
    def __init__(self):
        self.frames = {{}}
        self.best = None
        self.notes = pd.Series({{"made": "study"}})

    def trial(self, setting):
        xs = np.linspace(0, 1, 4)
        self.frames[setting] = pd.DataFrame({{"x": xs, "y": xs ** setting}})
        return float(self.frames[setting].y.mean())

    def compare(self):
        means = pd.Series({{key: frame.y.mean() for key, frame in self.frames.items()}}, name="mean")
        self.best = means.idxmax()
        self.notes["best"] = str(self.best)
        return means.to_dict()

study = Study()

def run_tool(name, arguments):
    return getattr(study, name)(**arguments)
""",
            OPENAI_LOOP,
            "print(study.best, study.notes.to_dict(), study.frames[2])",
        ),
        [[call("trial", setting=1)], [call("trial", setting=2)], [call("compare")], "Setting 1."],
    )
