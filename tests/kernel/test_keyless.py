"""A notebook that has a cassette, opened where no key is set: clients are built in untaped cells, as most notebooks do;
taped cells replay, and no placeholder ever goes out.
"""

import json
import shutil

import pytest

from tests.harness.notebook import Kernel, notebook, run_notebook
from tests.harness.provider import Provider, Scripted

LOAD = "%load_ext tape_jupyter"
KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-api03-real-0123456789",
    "OPENAI_API_KEY": "sk-proj-real-0123456789",
    "MISTRAL_API_KEY": "real-mistral-0123456789",
    "GEMINI_API_KEY": "AIzaSy-real-0123456789",
    "DEEPSEEK_API_KEY": "sk-deep-real-0123456789",
    "AZURE_OPENAI_API_KEY": "real-azure-0123456789",
    "OPENAI_API_VERSION": "2025-01-01",
    "AZURE_TENANT_ID": "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
    "AZURE_CLIENT_ID": "1a2b3c4d-5e6f-7081-92a3-b4c5d6e7f809",
    "AWS_ACCESS_KEY_ID": "AKIAREAL0REAL0REAL0R",
    "AWS_SECRET_ACCESS_KEY": "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "MY_CLIENT_SECRET": "real-client-secret-0123456789",
}
SETUP = """
import os, anthropic, boto3, httpx, openai, requests
from google import genai
from mistralai.client import Mistral
claude = anthropic.Anthropic(base_url="URL")
gpt = openai.OpenAI(base_url="URL/v1")
deepseek = openai.OpenAI(api_key=os.getenv("DEEPSEEK_API_KEY"), base_url="URL/v1")
azure = openai.AzureOpenAI()
tenant, who = os.environ["AZURE_TENANT_ID"], os.environ["AZURE_CLIENT_ID"]
bedrock = boto3.client("bedrock-runtime", endpoint_url="URL")
mistral = Mistral(api_key=os.environ["MISTRAL_API_KEY"], server_url="URL")
gemini = genai.Client(http_options={"base_url": "URL"})
"""
ASKED = "[{'role': 'user', 'content': 'hi'}]"
CHAT = f".chat.completions.create(model='gpt-5', messages={ASKED}).choices[0].message.content"
CALLS = {
    "claude": f"claude.messages.create(model='claude-sonnet-5', max_tokens=9, messages={ASKED}).content[0].text",
    "gpt": f"gpt{CHAT}",
    "deepseek": f"deepseek{CHAT}",
    "azure": f"azure{CHAT}",
    "bedrock": "bedrock.converse(modelId='m', messages=[{'role': 'user', 'content': [{'text': 'hi'}]}])['output']",
    "mistral": f"mistral.chat.complete(model='mistral-small', messages={ASKED}).choices[0].message.content",
    "gemini": "gemini.models.generate_content(model='gemini-2.5-flash', contents='hi').text",
}
AZURE = {
    "message": {"role": "assistant", "content": "from azure"},
    "index": 0,
    "finish_reason": "stop",
}
GEMINI = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "from gemini"}]}, "finishReason": "STOP"}
    ]
}


def answers(provider, path, body):
    head = {"content-type": "application/json"}
    provider.script(path, Scripted(headers=head, chunks=[json.dumps(body).encode()]))


@pytest.fixture(scope="module")
def asked():
    """The provider of the recording, which is made once for the module."""
    with Provider(vary=True) as provider:
        chat = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-5",
            "choices": [AZURE],
        }
        answers(provider, "/openai/deployments/gpt-5/chat/completions", chat)
        answers(provider, "/v1/models/gemini-2.5-flash:generateContent", GEMINI)
        token = {"access_token": "a-real-token-0123456789", "token_type": "Bearer"}
        answers(provider, "/token", token)
        yield provider


@pytest.fixture
def provider(asked):
    asked.requests.clear()
    yield asked
    asked.requests.clear()


@pytest.fixture(scope="module")
def recording(tmp_path_factory, asked):
    """Each client's call, recorded with every key set: where, and what it gave."""
    folder = tmp_path_factory.mktemp("recording")
    notebook(folder / "nb.ipynb", LOAD)
    with Kernel(folder, {**here(folder), **KEYS, "AZURE_OPENAI_ENDPOINT": asked.url}) as kernel:
        kernel.execute(LOAD)
        assert kernel.execute(SETUP.replace("URL", asked.url)).ok
        ran = {name: kernel.execute(f"%%tape record\n{call}") for name, call in CALLS.items()}
    assert all(each.ok for each in ran.values()), [
        each.traceback[-300:] for each in ran.values() if not each.ok
    ]
    return folder, {name: each.result for name, each in ran.items()}


@pytest.fixture
def recorded(recording, tmp_path, provider):
    """The recording in this test's folder; what each call gave."""
    folder, results = recording
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return results


def here(tmp_path):
    return {
        "TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_GCE_CHECK": "true",
    }


@pytest.fixture
def kernel(tmp_path, recorded):
    """A fresh kernel without any key, the extension loaded."""
    with Kernel(tmp_path, here(tmp_path)) as kernel:
        assert kernel.execute("import os; before = dict(os.environ)").ok
        assert kernel.execute(LOAD).ok
        yield kernel


@pytest.mark.slow
def test_clients_of_an_untaped_cell_replay_and_never_go_live(kernel, provider, recorded):
    setup = kernel.execute(SETUP.replace("URL", provider.url))
    assert setup.ok and not setup.stdout and not setup.stream("stderr"), setup.traceback
    assert {
        name: kernel.execute(f"%%tape replay\n{call}").result for name, call in CALLS.items()
    } == recorded
    for mode in ("", "%%tape record\n", "%%tape new_episodes fresh\n", "%tape live\n"):
        ran = kernel.execute(mode + CALLS["claude"])
        assert ran.ename == "BlockedConnection", mode
        assert (
            "ANTHROPIC_API_KEY is not set" in ran.evalue and "build the client again" in ran.evalue
        )
        assert "\n" not in ran.evalue
    kernel.execute("%tape off\n%reload_ext tape_jupyter")
    for name in ("gpt", "deepseek", "azure", "bedrock", "gemini"):
        ran = kernel.execute(f"%%tape replay --live llm\n{CALLS[name]}")
        assert ran.ename == "BlockedConnection" and "is not set" in ran.evalue, name
    assert provider.requests == []
    assert kernel.execute("dict(os.environ) == before").result == "True"


@pytest.mark.parametrize(
    "send",
    [
        "httpx.post(url, headers=told)",
        "requests.post(url, headers=told)",
        "requests.post(url, data={'password': key})",
        "requests.get(url, params={'key': key})",
        "requests.get(url, auth=('me', key))",
        "import urllib.request; urllib.request.urlopen(urllib.request.Request(url, headers=told))",
        "import aiohttp\nasync with aiohttp.ClientSession() as session:\n    await session.get(url, headers=told)",
        "from websockets.sync.client import connect; connect(url.replace('http', 'ws'), additional_headers=told)",
        "import subprocess; subprocess.run(['curl', '-H', 'x-api-key: ' + key, url])",
        "import subprocess; subprocess.run(['curl', url], env={**os.environ, 'KEY': key})",
        "os.system('curl -H x-api-key:' + key + ' ' + url)",
    ],
)
def test_no_way_out_takes_a_placeholder(shared, provider_of_all, send):
    told = "key = os.environ['MY_CLIENT_SECRET']; told = {'x-api-key': key}\n"
    ran = shared.execute(f"url = '{provider_of_all.url}/v1/messages'\n{told}{send}")
    assert ran.ename == "BlockedConnection" and "MY_CLIENT_SECRET is not set" in ran.evalue, (
        ran.traceback
    )
    assert provider_of_all.requests == []


@pytest.fixture(scope="module")
def provider_of_all():
    from tests.harness.provider import Provider

    with Provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A kernel without keys, in a notebook whose cassette was recorded with them."""
    where = tmp_path_factory.mktemp("shared")
    notebook(where / "nb.ipynb", LOAD)
    with Kernel(where, {**here(where), **KEYS}) as kernel:
        kernel.execute(LOAD)
        assert kernel.execute(
            "%%tape record\nimport tape_jupyter as tape\ntape.tool(len)('three')"
        ).ok
    with Kernel(where, here(where)) as kernel:
        kernel.execute(f"{LOAD}\nimport getpass, os, httpx, requests")
        yield kernel


def test_a_shell_command_does_not_run_with_a_placeholder(shared):
    assert (
        "MY_CLIENT_SECRET is not set"
        in shared.execute("!echo {os.environ['MY_CLIENT_SECRET']}").stdout
    )
    assert shared.execute("!echo [$MY_CLIENT_SECRET]").stdout.strip() == "[]"


def test_other_traffic_of_untaped_cells_goes_on(shared, provider_of_all):
    shared.execute("os.environ['MY_CLIENT_SECRET']")
    url = f"{provider_of_all.url}/v1/messages"
    body = "{'model': 'm', 'max_tokens': 9, 'messages': [{'role': 'user', 'content': 'hi'}]}"
    ran = shared.execute(
        f"httpx.post('{url}', json={body}).status_code, requests.post('{url}', json={body}).status_code"
    )
    assert ran.result == "(200, 200)"
    provider_of_all.requests.clear()


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("assert os.environ.get('OPENAI_API_KEY'), 'set it'", ""),
        ("if not os.getenv('OPENAI_API_KEY'):\n    raise ValueError('set it')", ""),
        ("os.environ['OPENAI_API_KEY'] = os.getenv('OPENAI_API_KEY')\nprint(*filter(None, [dict(os.environ).get('OPENAI_API_KEY')]))", ""),
        ("if 'OPENAI_API_KEY' not in os.environ:\n    os.environ['SEEN'] = 'missing'\nprint(os.environ['SEEN'])", "missing"),
        ("print(os.environ.setdefault('OPENAI_API_KEY', 'mine')); del os.environ['OPENAI_API_KEY']", "mine"),
        ("print(os.environ.pop('OPENAI_API_KEY', None))", "None"),
        ("print([name for name in os.environ if 'OPENAI' in name])", "[]"),
        ("print(os.environ.get('NEVER_RECORDED_API_KEY'))", "None"),
    ],
)  # fmt: skip
def test_code_that_uses_a_key_has_a_placeholder_and_code_that_sets_it_is_told_the_truth(
    shared, cell, shown
):
    ran = shared.execute(cell)
    assert (ran.ok, ran.stdout.strip()) == (True, shown), ran.traceback


@pytest.mark.parametrize(
    "cell",
    [
        "keys = dict(os.environ)\nkeys['MISTRAL_API_KEY']",
        "from pydantic_settings import BaseSettings\nclass Keys(BaseSettings):\n    mistral_api_key: str\nKeys()",
        "%%tape replay\nkeys['MISTRAL_API_KEY']",
    ],
)
def test_a_cell_that_misses_a_recorded_key_is_told_which(shared, cell):
    ran = shared.execute(cell)
    told = "tape: MISTRAL_API_KEY was set when this notebook was recorded and is not set here"
    assert not ran.ok
    assert told in ran.stdout


def test_an_error_that_is_about_no_key_is_the_programs_alone(shared):
    for cell in (
        "{}['NEVER_RECORDED_API_KEY']",
        "1 / 0",
        "raise KeyError('MISTRAL')",
        "raise ValueError('the key is odd')",
    ):
        ran = shared.execute(cell)
        assert (ran.ok, ran.stdout) == (False, ""), cell


ASKS = """def _set_env(name):
    if not os.environ.get(name):
        os.environ[name] = getpass.getpass(f"{name}: ")
_set_env("ANTHROPIC_API_KEY")"""


def test_a_person_is_asked_for_the_key_as_ever_and_may_type_none(shared):
    assert shared.execute(ASKS).ok, "nobody is there to be asked"
    for typed, there in (("", "None"), ("sk-ant-typed-0123", "'sk-ant-typed-0123'")):
        sent = shared.send(ASKS, allow_stdin=True)
        assert shared.answer(typed) == ("ANTHROPIC_API_KEY: ", True)
        assert shared.collect(sent).ok
        assert shared.execute("dict(os.environ).get('ANTHROPIC_API_KEY')").result in (
            there,
            None if typed == "" else there,
        )
    assert shared.execute("os.environ.pop('ANTHROPIC_API_KEY')").result == "'sk-ant-typed-0123'"


@pytest.mark.slow
def test_a_key_that_is_set_later_wins_once_the_client_is_built_again(kernel, tmp_path, provider):
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=sk-ant-from-dotenv-0123\n")
    build = f"import anthropic; claude = anthropic.Anthropic(base_url='{provider.url}')\n"
    assert kernel.execute(build).ok
    assert kernel.execute("from dotenv import load_dotenv; load_dotenv('.env')").result == "True"
    assert kernel.execute(CALLS["claude"]).ename == "BlockedConnection"
    assert provider.requests == []
    assert kernel.execute(build + CALLS["claude"]).ok
    assert kernel.execute(f"%%tape record\n{CALLS['claude']}").ok
    assert [seen.headers["authorization"] for seen in provider.requests] == [
        "Bearer sk-ant-from-dotenv-0123"
    ] * 2


@pytest.mark.night
def test_an_oauth_token_of_an_untaped_cell_stands_in_and_is_not_fetched(kernel, provider):
    told = "{'grant_type': 'client_credentials', 'client_id': 'me', 'client_secret': os.environ['MY_CLIENT_SECRET']}"
    ran = kernel.execute(
        f"import os, requests, openai\ntold = requests.post('{provider.url}/token', data={told}).json()\n"
        f"gpt = openai.OpenAI(api_key=told['access_token'], base_url='{provider.url}/v1')"
    )
    assert ran.ok, ran.traceback
    assert kernel.execute(f"%%tape replay\n{CALLS['gpt']}").ok
    ran = kernel.execute(CALLS["gpt"])
    assert ran.ename == "BlockedConnection" and "MY_CLIENT_SECRET is not set" in ran.evalue
    assert provider.requests == []


@pytest.mark.night
def test_a_profile_that_is_not_here_replays(kernel, provider, recorded):
    build = f"import boto3; bedrock = boto3.Session(profile_name='dev').client('bedrock-runtime', endpoint_url='{provider.url}')"
    assert kernel.execute(build).ok
    assert kernel.execute(f"%%tape replay\n{CALLS['bedrock']}").result == recorded["bedrock"]
    ran = kernel.execute(CALLS["bedrock"])
    assert (
        ran.ename == "BlockedConnection"
        and "AWS_ACCESS_KEY_ID" in ran.evalue
        and "profile" in ran.evalue
    )
    assert provider.requests == []


@pytest.mark.night
def test_googles_default_credentials_that_are_not_here_replay(tmp_path, provider):
    path = "/v1beta1/projects/p-1/locations/us-central1/publishers/google/models/gemini-2.5-flash:generateContent"
    answers(provider, path, GEMINI)
    client = (
        "from google import genai\nimport google.oauth2.credentials\ngemini = genai.Client(vertexai=True, project='p-1', "
        f"location='us-central1', http_options={{'base_url': '{provider.url}'}}, credentials=CREDENTIALS)"
    )
    notebook(tmp_path / "nb.ipynb", LOAD)
    with Kernel(tmp_path, here(tmp_path)) as kernel:
        kernel.execute(LOAD)
        kernel.execute(
            client.replace(
                "CREDENTIALS", "google.oauth2.credentials.Credentials('a-token-0123456789')"
            )
        )
        recorded = kernel.execute(f"%%tape record\n{CALLS['gemini']}")
        assert recorded.ok, recorded.traceback
    provider.requests.clear()
    with Kernel(
        tmp_path, {**here(tmp_path), "GOOGLE_APPLICATION_CREDENTIALS": "not/here.json"}
    ) as kernel:
        kernel.execute(LOAD)
        assert kernel.execute(client.replace("CREDENTIALS", "None")).ok
        assert kernel.execute(f"%%tape replay\n{CALLS['gemini']}").result == recorded.result
        ran = kernel.execute(CALLS["gemini"])
        assert ran.ename == "BlockedConnection" and "GOOGLE_APPLICATION_CREDENTIALS" in ran.evalue
        assert provider.requests == []


@pytest.mark.night
def test_real_credentials_are_used_before_placeholders(kernel, tmp_path, provider):
    (tmp_path / "aws").write_text(
        "[default]\naws_access_key_id=AKIAMINE\naws_secret_access_key=mine\nregion=eu-west-1\n"
    )
    kernel.execute(f"os.environ['AWS_SHARED_CREDENTIALS_FILE'] = '{tmp_path}/aws'")
    kernel.execute(
        f"import boto3; bedrock = boto3.client('bedrock-runtime', 'eu-west-1', endpoint_url='{provider.url}')"
    )
    assert kernel.execute(CALLS["bedrock"]).ok
    kernel.execute("import anthropic; os.environ['ANTHROPIC_AUTH_TOKEN'] = 'my-own-token-0123'")
    kernel.execute(f"claude = anthropic.Anthropic(base_url='{provider.url}')")
    assert kernel.execute(CALLS["claude"]).ok
    assert "AKIAMINE" in provider.requests[0].headers["authorization"]
    assert provider.requests[1].headers["authorization"] == "Bearer my-own-token-0123"


@pytest.mark.slow
def test_the_whole_notebook_runs_headless_without_a_key_or_a_stdin(tmp_path, provider, recorded):
    cells = [LOAD, f"import getpass, os\n{ASKS}", SETUP.replace("URL", provider.url)]
    ran = run_notebook(
        [*cells, *(f"%%tape replay\n{call}" for call in CALLS.values())], tmp_path, here(tmp_path)
    )
    assert [each.status for each in ran] == ["ok"] * len(ran), [each.traceback for each in ran]
    assert [each.result for each in ran[len(cells) :]] == list(recorded.values())
    assert provider.requests == []


STATE = "dict(os.environ), type(os.environ._data), httpx2.HTTPTransport.handle_request, [type(each) for each in sys.meta_path]"


def test_a_notebook_without_a_cassette_is_as_without_us(tmp_path):
    notebook(tmp_path / "nb.ipynb", LOAD)
    with Kernel(tmp_path, here(tmp_path)) as kernel:
        kernel.execute(f"import os, sys, httpx2, openai\nbefore = {STATE}")
        kernel.execute(LOAD)
        kernel.execute("1")
        assert kernel.execute(f"before == ({STATE})").result == "True"
        assert kernel.execute("openai.OpenAI()").ename == "OpenAIError"


def test_off_takes_the_placeholders_away(kernel):
    assert kernel.execute("bool(os.environ.get('OPENAI_API_KEY'))").result == "True"
    kernel.execute("%tape off")
    assert (
        kernel.execute("os.environ.get('OPENAI_API_KEY'), type(os.environ._data)").result
        == "(None, dict)"
    )


def test_a_cell_that_records_sees_the_environment_as_it_is(kernel):
    assert (
        kernel.execute(
            "%%tape record other\nprint(os.environ.get('OPENAI_API_KEY'))"
        ).stdout.strip()
        == "None"
    )


SCRIPT = """
import sys, anthropic, boto3, tape_jupyter as tape
claude = anthropic.Anthropic(base_url="URL")
bedrock = boto3.client("bedrock-runtime", endpoint_url="URL", region_name="eu-west-1")
with getattr(tape, sys.argv[1])("run.tape.yaml"):
    print(CLAUDE, BEDROCK)
"""


@pytest.mark.slow
def test_a_block_replays_around_clients_that_were_built_without_a_key(tmp_path, provider):
    from tests.harness.notebook import process

    text = (
        SCRIPT.replace("URL", provider.url)
        .replace("CLAUDE", CALLS["claude"])
        .replace("BEDROCK", CALLS["bedrock"])
    )
    (tmp_path / "script.py").write_text(text)
    recorded = process(["script.py", "recording"], tmp_path, KEYS)
    sent = len(provider.requests)
    replayed = process(["script.py", "replaying"], tmp_path, {"AWS_EC2_METADATA_DISABLED": "true"})
    assert recorded.stdout and replayed.stdout == recorded.stdout, replayed.stderr
    assert len(provider.requests) == sent == 2
