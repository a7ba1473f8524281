"""A model that follows a script answers in each provider's own form, as the SDKs read it."""

import json

import pytest

from tests.harness.scripted_model import ScriptedModel, call

SCRIPT = [["Let me see.", call("look", at="roof"), call("look", at="door")], "All is well."]
ASKED = [("look", {"at": "roof"}), ("look", {"at": "door"})]


@pytest.fixture
def model():
    with ScriptedModel(SCRIPT) as model:
        yield model


@pytest.mark.parametrize("streamed", [False, True])
def test_anthropic(model, streamed):
    import anthropic

    with anthropic.Anthropic(base_url=model.url, api_key="k") as client:
        messages = [{"role": "user", "content": "Check the house."}]

        def ask():
            asked = {"model": "m", "max_tokens": 9, "messages": messages}
            if not streamed:
                return client.messages.create(**asked)
            with client.messages.stream(**asked) as stream:
                return stream.get_final_message()

        first = ask()
        assert first.stop_reason == "tool_use" and first.content[0].text == "Let me see."
        assert [(block.name, block.input) for block in first.content[1:]] == ASKED
        messages += [{"role": "assistant", "content": [block.to_dict() for block in first.content]}]
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "ok"}
            for block in first.content[1:]
        ]
        messages += [{"role": "user", "content": results}]
        assert ask().content[0].text == "All is well."


@pytest.mark.parametrize("streamed", [False, True])
def test_openai_chat(model, streamed):
    import openai

    with openai.OpenAI(base_url=f"{model.url}/v1", api_key="k") as client:
        messages = [{"role": "user", "content": "Check the house."}]

        def ask():
            if not streamed:
                return (
                    client.chat.completions.create(model="m", messages=messages).choices[0].message
                )
            with client.chat.completions.stream(model="m", messages=messages) as stream:
                return stream.get_final_completion().choices[0].message

        first = ask()
        assert [
            (each.function.name, json.loads(each.function.arguments)) for each in first.tool_calls
        ] == ASKED
        messages += [
            {"role": "assistant", "tool_calls": [each.to_dict() for each in first.tool_calls]}
        ]
        messages += [
            {"role": "tool", "tool_call_id": each.id, "content": "ok"} for each in first.tool_calls
        ]
        assert ask().content == "All is well."


@pytest.mark.parametrize("by_id", [False, True])
def test_openai_responses(model, by_id):
    import openai

    with openai.OpenAI(base_url=f"{model.url}/v1", api_key="k") as client:
        items = [{"role": "user", "content": "Check the house."}]
        first = client.responses.create(model="m", input=items)
        asked = [item for item in first.output if item.type == "function_call"]
        assert [(item.name, json.loads(item.arguments)) for item in asked] == ASKED
        results = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "ok"}
            for item in asked
        ]
        if by_id:
            last = client.responses.create(model="m", input=results, previous_response_id=first.id)
        else:
            last = client.responses.create(
                model="m", input=[*items, *(item.to_dict() for item in first.output), *results]
            )
        assert last.output_text == "All is well."


@pytest.mark.parametrize("streamed", [False, True])
def test_gemini(model, streamed):
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="k", http_options={"base_url": model.url})
    config = types.GenerateContentConfig(
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
    )
    contents = [types.Content(role="user", parts=[types.Part(text="Check the house.")])]

    def ask():
        if not streamed:
            return client.models.generate_content(model="m", contents=contents, config=config)
        return list(
            client.models.generate_content_stream(model="m", contents=contents, config=config)
        )[-1]

    first = ask()
    assert [(each.name, each.args) for each in first.function_calls] == ASKED
    contents.append(first.candidates[0].content)
    parts = [types.Part.from_function_response(name="look", response={"ok": True}) for _ in ASKED]
    contents.append(types.Content(role="user", parts=parts))
    assert ask().text == "All is well."
    client.close()


def test_conversations_are_told_apart_by_their_words_in_whatever_order_they_come():
    import openai

    with (
        ScriptedModel({"cats": ["Meow."], "dogs": ["Woof."]}) as model,
        openai.OpenAI(base_url=f"{model.url}/v1", api_key="k", max_retries=0) as client,
    ):

        def ask(question):
            messages = [{"role": "user", "content": question}]
            return (
                client.chat.completions.create(model="m", messages=messages)
                .choices[0]
                .message.content
            )

        assert [ask("On dogs?"), ask("On cats?"), ask("dogs")] == ["Woof.", "Meow.", "Woof."]
        with pytest.raises(openai.BadRequestError, match="no turn 1"):
            ask("On birds?")
