from tests.agent_notebooks.written import AgentNotebook
def notebooks():
    return iter(())
