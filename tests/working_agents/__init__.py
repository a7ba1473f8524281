"""Notebooks of agents whose tools do things, as people write them; a module a family.

tests/trials/agent_runs.py records and replays them; tests/kernel/test_agent_runs.py runs a spread of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.working_agents import (
    builders,
    chance,
    concurrent,
    files,
    frameworks,
    habits,
    language,
    libraries,
    memory,
    modules,
    newcomers,
    registries,
    researchers,
    shown,
    strangers,
    surroundings,
    tables,
    troubles,
    visitors,
)
from tests.working_agents.written import AgentNotebook

FAMILIES = {
    module.__name__.rpartition(".")[2]: tuple(module.notebooks())
    for module in (
        memory,
        registries,
        shown,
        files,
        tables,
        concurrent,
        chance,
        troubles,
        frameworks,
        language,
        libraries,
        surroundings,
        modules,
        strangers,
        habits,
        researchers,
        builders,
        newcomers,
        visitors,
    )
}
NOTEBOOKS = {each.name: each for family in FAMILIES.values() for each in family}


def chosen(names: Sequence[str]) -> list[AgentNotebook]:
    """The notebooks of these names and families; all of them without names."""
    found: dict[str, AgentNotebook] = {} if names else dict(NOTEBOOKS)
    for name in names:
        family = FAMILIES.get(name)
        for each in (NOTEBOOKS[name],) if family is None else family:
            found[each.name] = each
    return list(found.values())
