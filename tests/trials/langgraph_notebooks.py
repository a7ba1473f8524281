"""Notebooks written as LangGraph's documentation writes them: name -> (cells, rules).

R begins a taped cell. A rule: words of the last message -> what the model says then, a text or calls of tools; without one
that fits it calls the first tool it is offered once, and says how many words it was sent.
"""

from tests.harness.scripted_model import call

R = "%%tape record\n"
USE = """from typing import Annotated, Literal
from typing_extensions import TypedDict
import operator
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
llm = ChatAnthropic(model="claude-sonnet-4-6", max_tokens=200)"""
SAY = 'def say(state): return {"messages": [llm.invoke(state["messages"])]}'
TOOLS = """@tool
def add(a: int, b: int) -> int:
    "Add a and b."
    return a + b

@tool
def multiply(a: int, b: int) -> int:
    "Multiply a and b."
    return a * b

tools = [add, multiply]
by_name = {each.name: each for each in tools}
with_tools = llm.bind_tools(tools)"""
AGENT = """def think(state: MessagesState):
    return {"messages": [with_tools.invoke(state["messages"])]}
graph = StateGraph(MessagesState)
graph.add_node("think", think)
graph.add_node("tools", ToolNode(tools))
graph.add_edge(START, "think")
graph.add_conditional_edges("think", tools_condition)
graph.add_edge("tools", "think")"""
SUMS = {
    r"Add 3 and 4": [call("add", a=3, b=4)],
    r"^7$": "The sum is 7.",
    r"Multiply that": [call("multiply", a=7, b=2)],
    r"^14$": "It makes 14.",
    r"both": ["First both.", call("add", a=1, b=2), call("multiply", a=3, b=4)],
    r"^12$": "3 and 12.",
}

NOTEBOOKS = {
    "chatbot": (
        [
            USE,
            "class State(TypedDict):\n    messages: Annotated[list, operator.add]\n" + SAY,
            'graph = StateGraph(State).add_node("say", say).add_edge(START, "say").add_edge("say", END).compile()',
            R + 'first = graph.invoke({"messages": [HumanMessage("Hi there")]})\nprint(first["messages"][-1].content)',
            R + 'second = graph.invoke({"messages": first["messages"] + [HumanMessage("And now?")]})\nprint([m.content for m in second["messages"]])',
            'print(len(second["messages"]))',
        ],
        {},
    ),
    "prompt chaining": (
        [
            USE,
            """class State(TypedDict):
    topic: str
    joke: str
    improved: str
    final: str
def generate(state): return {"joke": llm.invoke(f"Write a short joke about {state['topic']}").content}
def punchline(state): return "Pass" if "?" in state["joke"] else "Fail"
def improve(state): return {"improved": llm.invoke(f"Make this joke funnier: {state['joke']}").content}
def polish(state): return {"final": llm.invoke(f"Add a twist to this joke: {state['improved']}").content}
flow = StateGraph(State)
for node in (generate, improve, polish): flow.add_node(node.__name__, node)
flow.add_edge(START, "generate")
flow.add_conditional_edges("generate", punchline, {"Fail": "improve", "Pass": END})
flow.add_edge("improve", "polish"); flow.add_edge("polish", END)
chain = flow.compile()""",
            R + 'state = chain.invoke({"topic": "cats"})\nprint(state["joke"])',
            'if "improved" in state:\n    print("improved:", state["improved"]); print("final:", state["final"])\nelse:\n    print("passed")',
        ],
        {r"joke about": "A cat sat", r"funnier": "The cat sat twice", r"twist": "The dog sat"},
    ),
    "routing": (
        [
            USE,
            """class State(TypedDict):
    input: str
    decision: str
    output: str
def route(state): return {"decision": llm.invoke([SystemMessage("Route to story, joke or poem."), HumanMessage(state["input"])]).content}
def story(state): return {"output": "Story: " + llm.invoke("Tell a story: " + state["input"]).content}
def joke(state): return {"output": "Joke: " + llm.invoke("Tell a joke: " + state["input"]).content}
def pick(state): return "story" if "story" in state["decision"] else "joke"
graph = StateGraph(State)
graph.add_node("route", route); graph.add_node("story", story); graph.add_node("joke", joke)
graph.add_edge(START, "route"); graph.add_conditional_edges("route", pick, {"story": "story", "joke": "joke"})
graph.add_edge("story", END); graph.add_edge("joke", END)
router = graph.compile()""",
            R + 'state = router.invoke({"input": "Something of cats"})\nprint(state["output"])',
            'print(state["decision"], len(state["output"]))',
        ],
        {r"^Something of cats": "joke", r"Tell a joke": "Ha.", r"Tell a story": "Once."},
    ),
    "parallel branches": (
        [
            USE,
            """class State(TypedDict):
    topic: str
    parts: Annotated[list, operator.add]
    combined: str
def writer(kind):
    def write(state): return {"parts": [(kind, llm.invoke(f"Write a {kind} about {state['topic']}").content)]}
    return write
def join(state): return {"combined": "\\n".join(f"{k}: {v}" for k, v in sorted(state["parts"]))}
graph = StateGraph(State).add_node("join", join)
for kind in ("joke", "poem", "story"):
    graph.add_node(kind, writer(kind)); graph.add_edge(START, kind); graph.add_edge(kind, "join")
graph.add_edge("join", END)
app = graph.compile()""",
            R + 'state = app.invoke({"topic": "cats"})\nprint(state["combined"])',
            'lengths = {k: len(v) for k, v in sorted(state["parts"])}\nprint(lengths)',
        ],
        {},
    ),
    "evaluator and optimizer": (
        [
            USE,
            """class State(TypedDict):
    topic: str
    joke: str
    feedback: str
    rounds: int
def generate(state):
    words = f"Joke about {state['topic']}" + (f" with feedback {state['feedback']}" if state.get("feedback") else "")
    return {"joke": llm.invoke(words).content, "rounds": state.get("rounds", 0) + 1}
def evaluate(state): return {"feedback": llm.invoke("Grade: " + state["joke"]).content}
def accept(state): return "done" if "funny" in state["feedback"] or state["rounds"] > 2 else "again"
graph = StateGraph(State).add_node("generate", generate).add_node("evaluate", evaluate)
graph.add_edge(START, "generate"); graph.add_edge("generate", "evaluate")
graph.add_conditional_edges("evaluate", accept, {"done": END, "again": "generate"})
app = graph.compile()""",
            R + 'state = app.invoke({"topic": "cats"})\nprint(state["rounds"], state["joke"])',
            'print("feedback:", state["feedback"])',
        ],
        {r"^Joke about cats$": "one", r"with feedback": "two", r"Grade: one": "dull", r"Grade": "funny"},
    ),
    "agent with tools": (
        [
            USE,
            TOOLS,
            AGENT + "\nagent = graph.compile()",
            R + 'result = agent.invoke({"messages": [HumanMessage("Add 3 and 4")]})\nfor m in result["messages"]: m.pretty_print()',
            R + 'result = agent.invoke({"messages": result["messages"] + [HumanMessage("Multiply that by 2")]})\nprint(result["messages"][-1].content)',
            'print([type(m).__name__ for m in result["messages"]])',
        ],
        SUMS,
    ),
    "tools at once": (
        [
            USE,
            "log = []\n" + TOOLS.replace("    return a", "    log.append((a, b))\n    return a"),
            AGENT + "\nagent = graph.compile()",
            R + 'result = agent.invoke({"messages": [HumanMessage("Do both")]})\nprint(result["messages"][-1].content)',
            "print(sorted(log))",
            R + 'again = agent.invoke({"messages": [HumanMessage("Add 3 and 4")]})\nprint(again["messages"][-1].content)',
            "print(log[-1], len(log))",
        ],
        SUMS,
    ),
    "memory of a thread": (
        [
            USE,
            TOOLS,
            "from langgraph.checkpoint.memory import InMemorySaver\n" + AGENT + '\nmemory = InMemorySaver()\nagent = graph.compile(checkpointer=memory)\nconfig = {"configurable": {"thread_id": "1"}}',
            R + 'print(agent.invoke({"messages": [HumanMessage("Add 3 and 4")]}, config)["messages"][-1].content)',
            R + 'print(agent.invoke({"messages": [HumanMessage("Multiply that by 2")]}, config)["messages"][-1].content)',
            'snapshot = agent.get_state(config)\nprint(len(snapshot.values["messages"]), snapshot.next)\nprint([m.content for m in snapshot.values["messages"]])',
            'print([len(s.values.get("messages", [])) for s in agent.get_state_history(config)])',
        ],
        SUMS,
    ),
    "prebuilt agent": (
        [
            USE + "\nimport warnings\nwarnings.filterwarnings('ignore')\nfrom langgraph.prebuilt import create_react_agent",
            'def get_weather(city: str) -> str:\n    "Get weather for a given city."\n    return f"It\'s always sunny in {city}!"\nagent = create_react_agent(llm, tools=[get_weather], prompt="You are a helpful assistant")',
            R + 'result = agent.invoke({"messages": [{"role": "user", "content": "what is the weather in sf"}]})\nprint(result["messages"][-1].content)',
            R + 'for part in agent.stream({"messages": [{"role": "user", "content": "and in " + result["messages"][-1].content}]}, stream_mode="updates"): print(part.keys())',
            'print(result["messages"][1].tool_calls[0]["args"])',
        ],
        {},
    ),
    "stream of values": (
        [
            USE,
            TOOLS,
            AGENT + "\nagent = graph.compile()",
            R + 'kept = []\nfor event in agent.stream({"messages": [HumanMessage("Add 3 and 4")]}, stream_mode="values"):\n    kept.append(event["messages"][-1].content if isinstance(event["messages"][-1].content, str) else "call")\n    event["messages"][-1].pretty_print()',
            "print(kept)",
            R + 'for message, metadata in agent.stream({"messages": [HumanMessage("Say: " + kept[-1])]}, stream_mode="messages"):\n    if message.content: print(message.content, metadata["langgraph_node"])',
        ],
        SUMS,
    ),
    "tokens as they come": (
        [
            USE,
            SAY + '\ngraph = StateGraph(MessagesState).add_node("say", say).add_edge(START, "say").compile()',
            R + 'async def listen(text):\n    heard = []\n    async for kind, part in graph.astream({"messages": [HumanMessage(text)]}, stream_mode=["messages", "updates"]):\n        if kind == "messages": heard.append(part[0].content)\n        else: print(list(part))\n    return "".join(c if isinstance(c, str) else "".join(b.get("text", "") for b in c) for c in heard)\ntext = await listen("Tell me of cats")\nprint(text)',
            "words = text.split()\nprint(len(words))",
            R + "print(await listen(f'Again, in {len(words)} words'))",
        ],
        {},
    ),
    "a person approves": (
        [
            USE,
            """from langgraph.types import interrupt, Command
from langgraph.checkpoint.memory import InMemorySaver
class State(TypedDict):
    draft: str
    status: str
def write(state): return {"draft": llm.invoke("Write a mail").content}
def approve(state):
    answer = interrupt({"question": "Send it?", "draft": state["draft"]})
    return {"status": "sent" if answer == "yes" else "dropped"}
graph = StateGraph(State).add_node("write", write).add_node("approve", approve)
graph.add_edge(START, "write"); graph.add_edge("write", "approve")
app = graph.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "t"}}""",
            R + 'paused = app.invoke({}, config)\nprint(paused["__interrupt__"][0].value)',
            'answer = "yes" if len(paused["draft"]) > 20 else "no"\nprint(answer)',
            "final = app.invoke(Command(resume=answer), config)\nprint(final)",
            "print(app.get_state(config).next, app.get_state(config).values)",
        ],
        {},
    ),
    "approval of a tool": (
        [
            USE,
            """from langgraph.types import interrupt, Command
from langgraph.checkpoint.memory import InMemorySaver
booked = []
@tool
def book_hotel(name: str) -> str:
    "Book a hotel."
    answer = interrupt(f"Book {name}?")
    if answer["type"] == "edit": name = answer["name"]
    booked.append(name)
    return f"booked {name}"
tools = [book_hotel]; with_tools = llm.bind_tools(tools)
""" + AGENT + '\nagent = graph.compile(checkpointer=InMemorySaver())\nconfig = {"configurable": {"thread_id": "h"}}',
            R + 'hello = llm.invoke("Which hotel?").content\nprint(hello)',
            R + 'state = agent.invoke({"messages": [HumanMessage("Please book " + hello)]}, config)\nprint(state["__interrupt__"][0].value)',
            R + 'done = agent.invoke(Command(resume={"type": "edit", "name": "Ritz " + hello}), config)\nprint(done["messages"][-1].content)',
            "print(booked)",
        ],
        {r"Which hotel": "Astoria"},
    ),
    "map and reduce": (
        [
            USE + "\nfrom langgraph.types import Send",
            """class State(TypedDict):
    topic: str
    subjects: list
    jokes: Annotated[list, operator.add]
    best: str
def subjects(state): return {"subjects": llm.invoke("Subjects of " + state["topic"]).content.split(", ")}
def joke(state): return {"jokes": [llm.invoke("Joke about " + state["subject"]).content]}
def send(state): return [Send("joke", {"subject": s}) for s in state["subjects"]]
def best(state): return {"best": max(state["jokes"], key=len)}
graph = StateGraph(State).add_node("subjects", subjects).add_node("joke", joke).add_node("best", best)
graph.add_edge(START, "subjects"); graph.add_conditional_edges("subjects", send, ["joke"])
graph.add_edge("joke", "best"); graph.add_edge("best", END)
app = graph.compile()""",
            R + 'for part in app.stream({"topic": "animals"}): print(sorted(part))',
            R + 'state = app.invoke({"topic": "plants"})\nprint(sorted(state["jokes"]), state["best"])',
            'print(len(state["subjects"]))',
        ],
        {r"Subjects of animals": "lions, elephants, penguins", r"Subjects of plants": "oaks, roses"},
    ),
    "orchestrator and workers": (
        [
            USE + "\nfrom langgraph.types import Send\nfrom pydantic import BaseModel, Field",
            """class State(TypedDict):
    topic: str
    plan: str
    sections: list
    done: Annotated[list, operator.add]
    report: str
def orchestrate(state):
    plan = llm.invoke("Plan a report on " + state["topic"]).content
    return {"plan": plan, "sections": [s for s in plan.split("; ") if s]}
def work(state): return {"done": [(state["place"], "## " + state["section"] + "\\n" + llm.invoke("Section " + state["section"]).content)]}
def assign(state): return [Send("work", {"section": s, "place": n}) for n, s in enumerate(state["sections"])]
def synthesize(state): return {"report": "\\n\\n".join(text for _, text in sorted(state["done"]))}
graph = StateGraph(State)
for node in (orchestrate, work, synthesize): graph.add_node(node.__name__, node)
graph.add_edge(START, "orchestrate"); graph.add_conditional_edges("orchestrate", assign, ["work"])
graph.add_edge("work", "synthesize"); graph.add_edge("synthesize", END)
app = graph.compile()""",
            R + 'state = app.invoke({"topic": "laws"})',
            "from IPython.display import Markdown\nMarkdown(state['report'])",
            'print(state["report"])',
            "open('report.md', 'w').write(state['report'])",
        ],
        {r"Plan a report": "History; Present; Future"},
    ),
    "a subgraph": (
        [
            USE,
            """class Inner(TypedDict):
    text: str
    summary: str
def summarize(state): return {"summary": llm.invoke("Summarize: " + state["text"]).content}
inner = StateGraph(Inner).add_node("summarize", summarize).add_edge(START, "summarize").compile()""",
            """class Outer(TypedDict):
    question: str
    text: str
    summary: str
def answer(state): return {"text": llm.invoke(state["question"]).content}
outer = StateGraph(Outer).add_node("answer", answer).add_node("inner", inner)
outer.add_edge(START, "answer"); outer.add_edge("answer", "inner")
app = outer.compile()""",
            R + 'for namespace, part in app.stream({"question": "What is a law?"}, subgraphs=True): print(len(namespace), part)',
            R + 'print(inner.invoke({"text": "short"}))',
            R + 'both = app.invoke({"question": "And a rule?"})\nprint(both["summary"])',
        ],
        {},
    ),
    "a store of memories": (
        [
            USE,
            """from langgraph.store.memory import InMemoryStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langchain_core.runnables import RunnableConfig
store = InMemoryStore()
def remember(state: MessagesState, config: RunnableConfig, *, store: BaseStore):
    space = ("memories", config["configurable"]["user_id"])
    known = [item.value["data"] for item in store.search(space)]
    reply = llm.invoke([SystemMessage("Known: " + "; ".join(sorted(known))), *state["messages"]])
    store.put(space, str(len(known)), {"data": reply.content})
    return {"messages": [reply]}
app = StateGraph(MessagesState).add_node("remember", remember).add_edge(START, "remember").compile(checkpointer=InMemorySaver(), store=store)""",
            R + 'config = {"configurable": {"thread_id": "1", "user_id": "ada"}}\nprint(app.invoke({"messages": [HumanMessage("My name is Ada")]}, config)["messages"][-1].content)',
            R + 'print(app.invoke({"messages": [HumanMessage("What is my name?")]}, {"configurable": {"thread_id": "2", "user_id": "ada"}})["messages"][-1].content)',
            'print(sorted(item.value["data"] for item in store.search(("memories", "ada"))))',
        ],
        {r"My name is": "Noted, Ada."},
    ),
    "reflection": (
        [
            USE,
            """def draft(state): return {"messages": [llm.invoke(state["messages"])]}
def critique(state):
    swap = {"ai": HumanMessage, "human": AIMessage}
    seen = [state["messages"][0]] + [swap[m.type](m.content) for m in state["messages"][1:]]
    return {"messages": [HumanMessage(llm.invoke([SystemMessage("You grade.")] + seen).content)]}
def more(state): return END if len(state["messages"]) > 4 else "critique"
graph = StateGraph(MessagesState).add_node("draft", draft).add_node("critique", critique)
graph.add_edge(START, "draft"); graph.add_conditional_edges("draft", more, ["critique", END]); graph.add_edge("critique", "draft")
app = graph.compile()""",
            R + 'async for event in app.astream({"messages": [HumanMessage("Write an essay")]}):\n    for node, out in event.items(): print(node, "|", out["messages"][-1].content)',
            R + 'end = await app.ainvoke({"messages": [HumanMessage("Write a poem")]})\nprint(len(end["messages"]))',
        ],
        {},
    ),
    "plan and execute": (
        [
            USE,
            """class State(TypedDict):
    input: str
    plan: list
    past: Annotated[list, operator.add]
    response: str
def plan(state): return {"plan": llm.invoke("Plan: " + state["input"]).content.split("; ")}
def execute(state):
    step = state["plan"][0]
    return {"past": [(step, llm.invoke("Do: " + step).content)], "plan": state["plan"][1:]}
def replan(state):
    return {} if state["plan"] else {"response": llm.invoke("Finish: " + str(state["past"])).content}
def ended(state): return END if state.get("response") else "execute"
graph = StateGraph(State).add_node("plan_it", plan).add_node("execute", execute).add_node("replan", replan)
graph.add_edge(START, "plan_it"); graph.add_edge("plan_it", "execute"); graph.add_edge("execute", "replan")
graph.add_conditional_edges("replan", ended, ["execute", END])
app = graph.compile()""",
            R + 'for event in app.stream({"input": "Bake a cake"}, {"recursion_limit": 20}):\n    for k, v in event.items(): print(k, v)',
            R + 'final = app.invoke({"input": "Brew tea"})',
            'print(final["response"]); steps = [s for s, _ in final["past"]]\nsteps',
        ],
        {r"Plan: Bake": "mix; bake", r"Plan: Brew": "boil; pour; wait", r"^Do": "done", r"^Finish": "All is done."},
    ),
    "a supervisor": (
        [
            USE + "\nfrom langgraph.types import Command",
            """def supervisor(state: MessagesState) -> Command[Literal["researcher", "coder", "__end__"]]:
    told = llm.invoke([SystemMessage("Who is next: researcher, coder or FINISH?")] + state["messages"]).content
    goto = next((n for n in ("researcher", "coder") if n in told), END)
    return Command(goto=goto)
def worker(name):
    def work(state: MessagesState) -> Command[Literal["supervisor"]]:
        said = llm.invoke([SystemMessage(f"You are {name}.")] + state["messages"]).content
        return Command(update={"messages": [HumanMessage(f"{name}: {said}", name=name)]}, goto="supervisor")
    return work
graph = StateGraph(MessagesState).add_node("supervisor", supervisor)
graph.add_node("researcher", worker("researcher")); graph.add_node("coder", worker("coder"))
graph.add_edge(START, "supervisor")
app = graph.compile()""",
            R + 'for part in app.stream({"messages": [("user", "Begin with the first")]}): print(part)',
            R + 'last = app.invoke({"messages": [("user", "Begin with the second")]})["messages"]\nprint([m.content for m in last])',
        ],
        {r"coder: ": "FINISH", r"researcher: ": "coder", r"Begin with": "the researcher"},
    ),
    "handoffs": (
        [
            USE + "\nfrom langgraph.types import Command\nfrom langgraph.prebuilt import InjectedState\nfrom langchain_core.tools import InjectedToolCallId",
            """@tool
def transfer_to_bob(state: Annotated[dict, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]):
    "Ask Bob."
    done = ToolMessage("transferred to bob", name="transfer_to_bob", tool_call_id=tool_call_id)
    return Command(goto="bob", graph=Command.PARENT, update={"messages": state["messages"] + [done]})
def alice_think(state): return {"messages": [llm.bind_tools([transfer_to_bob]).invoke([SystemMessage("You are Alice.")] + state["messages"])]}
sub = StateGraph(MessagesState).add_node("think", alice_think).add_node("tools", ToolNode([transfer_to_bob]))
sub.add_edge(START, "think"); sub.add_conditional_edges("think", tools_condition); sub.add_edge("tools", "think")
def bob(state): return {"messages": [llm.invoke([SystemMessage("You are Bob, speak like a pirate.")] + state["messages"])]}
graph = StateGraph(MessagesState).add_node("alice", sub.compile()).add_node("bob", bob).add_edge(START, "alice")
team = graph.compile()""",
            R + 'told = llm.invoke("Whom to greet?").content\nprint(told)',
            R + 'end = team.invoke({"messages": [HumanMessage("Talk to bob for " + told)]})\nfor m in end["messages"]: print(m.type, m.content if isinstance(m.content, str) else "...")',
            "print(len(end['messages']))",
        ],
        {r"Talk to bob": [call("transfer_to_bob")], r"Whom": "Ahoy"},
    ),
    "structured output": (
        [
            USE + "\nfrom pydantic import BaseModel, Field",
            """class Search(BaseModel):
    query: str = Field(description="A query for the web.")
    why: str = Field(description="Why.")
structured = llm.with_structured_output(Search)""",
            R + 'topic = llm.invoke("Name a topic").content\nprint(topic)',
            R + 'found = structured.invoke("How does " + topic)\nprint(found)',
            "text = found.model_dump_json()\nprint(text)",
            R + "print(llm.invoke('Explain ' + found.query).content)",
        ],
        {r"Name a topic": "calcium"},
    ),
    "retrieval and grading": (
        [
            USE,
            """DOCS = {"agents": "Agents plan.", "prompts": "Prompts steer.", "cats": "Cats sleep."}
class State(TypedDict):
    question: str
    documents: list
    generation: str
    tries: int
def retrieve(state): return {"documents": [v for k, v in DOCS.items() if k in state["question"]], "tries": state.get("tries", 0) + 1}
def grade(state): return {"documents": [d for d in state["documents"] if "yes" in llm.invoke("Relevant? " + d).content]}
def rewrite(state): return {"question": llm.invoke("Rewrite " + state["question"]).content}
def generate(state): return {"generation": llm.invoke("Answer with " + " ".join(state["documents"])).content}
def decide(state): return "generate" if state["documents"] or state["tries"] > 1 else "rewrite"
graph = StateGraph(State)
for node in (retrieve, grade, rewrite, generate): graph.add_node(node.__name__, node)
graph.add_edge(START, "retrieve"); graph.add_edge("retrieve", "grade"); graph.add_conditional_edges("grade", decide, ["generate", "rewrite"])
graph.add_edge("rewrite", "retrieve"); graph.add_edge("generate", END)
app = graph.compile()""",
            R + 'for out in app.stream({"question": "How do agents plan?"}):\n    for k, v in out.items(): print(k, v)',
            R + 'value = app.invoke({"question": "Do cats sleep?"})\nprint(value["generation"])',
            'print(value["tries"], value["documents"])',
        ],
        {r"Relevant\? Agents": "yes", r"Relevant\? Cats": "no", r"^Rewrite": "prompts, then"},
    ),
    "functional api": (
        [
            USE,
            """from langgraph.func import entrypoint, task
from langgraph.checkpoint.memory import InMemorySaver
@task
def compose(topic): return llm.invoke("Essay about " + topic).content
@task
def score(essay): return len(llm.invoke("Score " + essay).content)
@entrypoint(checkpointer=InMemorySaver())
def workflow(topic: str, *, previous: dict = None) -> dict:
    essay = compose(topic).result()
    return {"essay": essay, "score": score(essay).result(), "before": (previous or {}).get("score")}
config = {"configurable": {"thread_id": "e"}}""",
            R + 'one = workflow.invoke("cats", config)\nprint(one)',
            R + 'two = workflow.invoke("dogs", config)\nprint(two)',
            'print(two["before"] == one["score"])',
        ],
        {},
    ),
    "time travel": (
        [
            USE,
            """from langgraph.checkpoint.memory import InMemorySaver
class State(TypedDict):
    topic: str
    joke: str
def topic(state): return {"topic": llm.invoke("A topic").content}
def joke(state): return {"joke": llm.invoke("A joke on " + state["topic"]).content}
graph = StateGraph(State).add_node("pick", topic).add_node("tell", joke).add_edge(START, "pick").add_edge("pick", "tell").compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}""",
            R + 'state = graph.invoke({}, config)\nprint(state)',
            "states = list(graph.get_state_history(config))\nprint([s.next for s in states])\nchosen = states[1]\nprint(chosen.values)",
            R + 'fork = graph.update_state(chosen.config, {"topic": "chickens"})\nprint(graph.invoke(None, fork))',
            "print(len(list(graph.get_state_history(config))))",
        ],
        {r"A topic": "socks"},
    ),
    "trimming and summaries": (
        [
            USE + "\nfrom langchain_core.messages import RemoveMessage\nfrom langgraph.checkpoint.memory import InMemorySaver",
            """class State(MessagesState):
    summary: str
def talk(state):
    known = [SystemMessage("Summary: " + state["summary"])] if state.get("summary") else []
    return {"messages": [llm.invoke(known + state["messages"])]}
def summarize(state):
    text = llm.invoke(state["messages"] + [HumanMessage("Summarize the above")]).content
    return {"summary": text, "messages": [RemoveMessage(id=m.id) for m in state["messages"][:-2]]}
def long(state): return "summarize" if len(state["messages"]) > 4 else END
graph = StateGraph(State).add_node("talk", talk).add_node("summarize", summarize)
graph.add_edge(START, "talk"); graph.add_conditional_edges("talk", long, ["summarize", END]); graph.add_edge("summarize", END)
app = graph.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "4"}}""",
            R + 'for text in ("hi, I am bob", "what is my name?", "I like football"):\n    print(app.invoke({"messages": [HumanMessage(text)]}, config)["messages"][-1].content)',
            'values = app.get_state(config).values\nprint(values.get("summary"), len(values["messages"]))',
            R + 'print(app.invoke({"messages": [HumanMessage("bye")]}, config)["messages"][-1].content)',
        ],
        {},
    ),
}  # fmt: skip
