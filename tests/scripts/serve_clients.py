#!/usr/bin/env python3
"""Tests `holorun serve` with the openai and anthropic packages, whose types parse each format that the server emits.

    serve_clients.py [PROGRAM] [--record FOLDER]      default: ./holorun

Starts the server on a free port with the embedded model, with a chat template that supports tools, sends one request
of each kind, and validates each reply and event strictly (pydantic's model_validate refuses a wrong type or an
unknown finish_reason). --record also stores the bytes of each reply, for tests without the packages. Exit code 0 if
all are valid.
"""
import base64
import datetime
import enum
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from typing import List, Literal, Optional, Union

import anthropic
import openai
from anthropic.types import Message, RawMessageStreamEvent
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, Field, TypeAdapter

try:
    import httpx
except ImportError:  # dependency of newer versions of both packages
    import httpx2 as httpx

SCHEMA = {"type": "object", "additionalProperties": False, "required": ["x", "y"],
          "properties": {"x": {"type": "integer", "minimum": 0, "maximum": 1000},
                         "y": {"type": "integer", "minimum": 0, "maximum": 1000}}}
TOOLS = [{"type": "function", "function": {"name": "click", "description": "clicks", "parameters": SCHEMA}}]


class Point(BaseModel):
    x: int
    y: int


def picture(width=64, height=48):
    rows = b"".join(b"\0" + bytes((x * 4 % 256, y * 5 % 256, 90)[c] for x in range(width) for c in range(3))
                    for y in range(height))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(
        ">I", zlib.crc32(kind + data))
    png = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
           chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(png).decode()}}


def user(text, pictures=1):
    return {"role": "user", "content": [picture() for _ in range(pictures)] + [{"type": "text", "text": text}]}


REQUESTS = {
    "plain": dict(messages=[user("Where is Save?")], max_tokens=20, temperature=0),
    "text": dict(messages=[{"role": "developer", "content": "Be brief."}, user("Hello", 0)], max_tokens=5, seed=3),
    "stop": dict(messages=[user("Go on", 0)], max_tokens=40, temperature=0, stop=["d", "e"]),
    "logprobs": dict(messages=[user("Odds")], max_tokens=6, temperature=0, logprobs=True, top_logprobs=3),
    "schema": dict(messages=[user("Localise Save")], max_tokens=60, temperature=0,
                   response_format={"type": "json_schema", "json_schema": {"name": "point", "strict": True,
                                                                           "schema": SCHEMA}}),
    "tool": dict(messages=[user("Click")], max_tokens=80, temperature=0, tools=TOOLS, tool_choice="required"),
    "ids": dict(messages=[user("Ids")], max_tokens=6, temperature=0, extra_body={"return_token_ids": True}),
}


def raw(base, key, body):
    body = dict(body)
    body.update(body.pop("extra_body", {}))
    return httpx.post(base + "/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=120)


def check_whole(client, base, key, name, request, record):
    reply = client.chat.completions.create(model="pocket", **request)
    text = raw(base, key, dict(request, model="pocket")).text
    record(f"{name}.json", text)
    strict = ChatCompletion.model_validate(json.loads(text))
    assert strict.usage.total_tokens == strict.usage.prompt_tokens + strict.usage.completion_tokens
    assert reply.choices[0].message.content == strict.choices[0].message.content or request.get("seed")
    return reply.choices[0]


def check_stream(client, base, key, name, request, record):
    request = dict(request, stream=True, stream_options={"include_usage": True})
    content, calls, finish, usage = "", {}, None, None
    for chunk in client.chat.completions.create(model="pocket", **request):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            content += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or []:
                calls.setdefault(call.index, [call.function.name, ""])[1] += call.function.arguments
    text = raw(base, key, dict(request, model="pocket")).text
    record(f"{name}.sse", text)
    events = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    for event in events[:-1]:
        ChatCompletionChunk.model_validate(json.loads(event))
    assert usage and finish
    return content, calls, finish


def check_errors(client, base):
    for request, error in ((dict(model="gpt", messages=[user("x", 0)]), openai.NotFoundError),
                           (dict(model="pocket", messages=[]), openai.BadRequestError),
                           (dict(model="pocket", messages=[user("x", 0)], n=2), openai.BadRequestError)):
        try:
            client.chat.completions.create(**request)
        except error as e:
            assert e.body["message"] and e.body["type"]
        else:
            raise AssertionError(f"no {error.__name__}")
    packed = httpx.post(base + "/chat/completions", content=b"x", headers={"Authorization": f"Bearer {client.api_key}", "Content-Encoding": "gzip"})
    assert packed.status_code == 415 and "Content-Encoding" in packed.text, packed.text
    try:
        openai.OpenAI(base_url=base, api_key="wrong", max_retries=0).models.list()
    except openai.AuthenticationError:
        return
    raise AssertionError("a wrong token was taken")


# ---- Responses ---------------------------------------------------------------------------------------

ITEM = {"role": "user", "content": [{"type": "input_image", "detail": "high", "image_url": picture()["image_url"]["url"]},
                                    {"type": "input_text", "text": "Where is Save?"}]}
FUNCTION = {"type": "function", "name": "click", "description": "clicks", "parameters": SCHEMA, "strict": True}
RESPONSES = {
    "plain": dict(input=[ITEM], max_output_tokens=12, temperature=0),
    "text": dict(instructions="Be brief.", input="Hello", max_output_tokens=400, temperature=0),
    "schema": dict(input=[ITEM], max_output_tokens=60, temperature=0,
                   text={"format": {"type": "json_schema", "name": "point", "strict": True, "schema": SCHEMA}}),
    "tool": dict(input=[ITEM], max_output_tokens=80, temperature=0, tools=[FUNCTION], tool_choice="required"),
    "named": dict(input=[ITEM], max_output_tokens=80, temperature=0, tools=[FUNCTION],
                  tool_choice={"type": "function", "name": "click"}),
}


def post(base, path, headers, body):
    reply = httpx.post(base + path, json=body, headers=headers, timeout=120)
    assert reply.status_code == 200, reply.text
    return reply.text


def check_responses(client, base, key, record):
    stream_event, headers = TypeAdapter(ResponseStreamEvent), {"Authorization": f"Bearer {key}"}
    for name, request in RESPONSES.items():
        reply = client.responses.create(model="pocket", **request)
        text = post(base, "/responses", headers, dict(request, model="pocket"))
        record(f"responses_{name}.json", text)
        whole = Response.model_validate(json.loads(text))
        assert whole.usage.total_tokens == whole.usage.input_tokens + whole.usage.output_tokens
        assert reply.output_text == whole.output_text
        stream = post(base, "/responses", headers, dict(request, model="pocket", stream=True))
        record(f"responses_{name}.sse", stream)
        events = [stream_event.validate_python(json.loads(line[6:])) for line in stream.split("\n")
                  if line.startswith("data: ")]
        assert [e.sequence_number for e in events] == list(range(len(events)))
        assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == whole.output_text
        assert [i.type for i in events[-1].response.output] == [i.type for i in whole.output]
        with client.responses.stream(model="pocket", **request) as s: # the package merges the events
            assert s.get_final_response().output_text == whole.output_text if whole.status == "completed" else True
        print(f"responses, {name}: whole and streamed, {whole.status}, {[i.type for i in whole.output]}")
    call = client.responses.create(model="pocket", **RESPONSES["tool"]).output[-1]
    Point.model_validate_json(call.arguments)
    again = client.responses.create(model="pocket", max_output_tokens=5, tools=[FUNCTION], input=[
        ITEM, call.model_dump(), {"type": "function_call_output", "call_id": call.call_id, "output": "done"}])
    assert again.usage.input_tokens_details.cached_tokens > 0
    for wrong in (dict(input="x", previous_response_id="resp_1"), dict(input="x", tools=[{"type": "computer_use_preview"}]),
                  dict(input=[{"type": "item_reference", "id": "rs_1"}]), dict(input="x", tools=[{"type": "web_search"}], tool_choice={"type": "web_search"})):
        try:
            client.responses.create(model="pocket", **wrong)
        except openai.BadRequestError as e:
            assert any(w in e.body["message"] for w in ("not supported", "not stored", "not 'web_search'")), e.body
        else:
            raise AssertionError(wrong)
    print("responses: a call and its result go on in the conversation; what is not kept is refused")


# ---- Messages ----------------------------------------------------------------------------------------

BLOCKS = [{"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                       "data": picture()["image_url"]["url"].split(",")[1]}},
          {"type": "text", "text": "Where is Save?"}]
TOOL = {"name": "click", "description": "clicks", "input_schema": SCHEMA}
MESSAGES = {
    "plain": dict(messages=[{"role": "user", "content": BLOCKS}], max_tokens=12),
    "text": dict(system="Be brief.", messages=[{"role": "user", "content": "Hello"}], max_tokens=400),
    "stop": dict(messages=[{"role": "user", "content": "Go on"}], max_tokens=40, stop_sequences=["d", "e"]),
    "tool": dict(messages=[{"role": "user", "content": BLOCKS}], max_tokens=80, tools=[TOOL],
                 tool_choice={"type": "any"}),
    "named": dict(messages=[{"role": "user", "content": BLOCKS}], max_tokens=80, tools=[TOOL],
                  tool_choice={"type": "tool", "name": "click"}),
}


def check_messages(base, key, record):
    client = anthropic.Anthropic(base_url=base[:-3], api_key=key, max_retries=0)
    stream_event, headers = TypeAdapter(RawMessageStreamEvent), {"x-api-key": key, "anthropic-version": "2023-06-01"}
    greedy = {"temperature": 0} # newer versions of the package have no argument for it
    for name, request in MESSAGES.items():
        reply = client.messages.create(model="pocket", extra_body=greedy, **request)
        text = post(base, "/messages", headers, dict(request, model="pocket", **greedy))
        record(f"messages_{name}.json", text)
        whole = Message.model_validate(json.loads(text))
        assert [b.type for b in reply.content] == [b.type for b in whole.content]
        stream = post(base, "/messages", headers, dict(request, model="pocket", stream=True, **greedy))
        record(f"messages_{name}.sse", stream)
        for line in stream.split("\n"):
            if line.startswith("data: "):
                stream_event.validate_python(json.loads(line[6:]))
        with client.messages.stream(model="pocket", extra_body=greedy, **request) as s: # the package merges the events
            final = s.get_final_message()
        assert final.stop_reason == whole.stop_reason
        same = lambda m: [getattr(b, "text", None) or getattr(b, "input", None) for b in m.content]
        assert same(final) == same(whole), (name, same(final), same(whole))
        print(f"messages, {name}: whole and streamed, {whole.stop_reason}, {[b.type for b in whole.content]}")
    use = client.messages.create(model="pocket", **MESSAGES["tool"]).content[-1]
    Point.model_validate(use.input)
    again = client.messages.create(model="pocket", max_tokens=5, tools=[TOOL], messages=[
        {"role": "user", "content": BLOCKS}, {"role": "assistant", "content": [use.model_dump()]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": BLOCKS}]}])
    assert again.usage.cache_read_input_tokens > 0
    for name, request in MESSAGES.items(): # a count equals the prompt tokens of the same request
        counted = client.messages.count_tokens(model="pocket", **{k: v for k, v in request.items() if k in ("messages", "system", "tools", "tool_choice")})
        usage = client.messages.create(model="pocket", **request).usage
        assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens, name
    for wrong, error in ((dict(tools=[{"type": "computer_toolset_20260801", "name": "computer"}]), anthropic.BadRequestError),
                         (dict(model="claude"), anthropic.NotFoundError)):
        try:
            client.messages.create(**dict(dict(model="pocket", max_tokens=5, messages=[{"role": "user", "content": "x"}]), **wrong))
        except error as e:
            assert e.body["type"] == "error" and e.body["error"]["message"]
        else:
            raise AssertionError(wrong)
    print("messages: a use and its result go on in the conversation; a vendor's tool is refused")


# ---- agents ------------------------------------------------------------------------------------------

class Colour(enum.Enum):
    red = "red"
    green = "green"


class Label(BaseModel):
    text: str = Field(max_length=8)
    colour: Colour


class Screen(BaseModel):
    """A model with fields of all kinds, for pydantic's schemas."""
    title: Label
    places: List[Point] = Field(min_length=1, max_length=2)
    share: float = Field(ge=0, lt=1)
    taken: datetime.date
    note: Optional[Label] = None
    kind: Literal["form", "dialog"]
    size: Union[int, Literal["full"]]


def filled(body):
    """Returns a recorded request of an agent with an image and this server's model."""
    url = picture()["image_url"]["url"]
    text = json.dumps(body).replace("$PICTURE", url).replace("$DATA", url.split(",")[1])
    return dict(json.loads(text), model="pocket")


def case(name):
    with open(os.path.join(os.path.dirname(__file__), "..", "cases", "serve", name + ".json"), encoding="utf-8") as f:
        return json.load(f)


def check_ignored(raw, of):
    names = lambda text: sorted(text.split(", "))
    assert names(raw.headers["x-holorun-ignored"]) == names(of["ignored"]), raw.headers["x-holorun-ignored"]


def check_codex(client):
    """Codex streams Responses with custom tools, a shell and web search in addition to its functions."""
    of = case("codex")
    body = dict(filled(of["body"]), max_output_tokens=60)
    body["extra_body"] = {"client_metadata": body.pop("client_metadata")} # unknown to the package
    raw = client.responses.with_raw_response.create(**body)
    check_ignored(raw, of)
    events = list(raw.parse())
    assert events[0].type == "response.created" and events[-1].type in ("response.completed", "response.incomplete")
    body.pop("stream")
    counted = client.responses.input_tokens.count(model="pocket", input=body["input"], instructions=body["instructions"],
                                                  tools=body["tools"], reasoning=body["reasoning"])
    whole = client.responses.create(**body)
    assert counted.input_tokens == whole.usage.input_tokens, (counted, whole.usage)
    items = body["input"] + [i.model_dump(exclude_none=True) for i in whole.output] + [{"role": "user", "content": "More."}]
    assert client.responses.create(**dict(body, input=items)).usage.input_tokens_details.cached_tokens > 0
    print(f"codex: {len(events)} events, {counted.input_tokens} tokens counted; ignored: {of['ignored']}")


def check_claude_code(base, key):
    """Claude Code streams Messages with system blocks, cache marks, betas and a thinking budget."""
    of = case("claude_code")
    body = dict(filled(of["body"]), max_tokens=60)
    client = anthropic.Anthropic(base_url=base[:-3], auth_token=key, api_key=None, max_retries=0)
    extra = {k: body.pop(k) for k in ("temperature", "stream", "service_tier")}
    betas = ["claude-code-20250219", "interleaved-thinking-2025-05-14", "context-management-2025-06-27"]
    with client.beta.messages.stream(betas=betas, extra_body={"temperature": 0}, **body) as s:
        final = s.get_final_message()
    raw = client.beta.messages.with_raw_response.create(betas=betas, extra_body={"temperature": 0}, **body)
    check_ignored(raw, of)
    assert [b.type for b in raw.parse().content] == [b.type for b in final.content]
    prompt = {k: v for k, v in body.items() if k not in ("max_tokens", "metadata")}
    counted = client.beta.messages.count_tokens(betas=betas, **prompt).input_tokens
    assert counted == final.usage.input_tokens + final.usage.cache_read_input_tokens
    assert extra["stream"]
    print(f"claude code: {final.stop_reason}, {counted} tokens counted; ignored: {of['ignored']}")


def check_schemas(client):
    screen = client.chat.completions.parse(model="pocket", messages=[user("What is this?")], temperature=1, seed=1,
                                           max_tokens=900, response_format=Screen).choices[0].message.parsed
    again = client.responses.parse(model="pocket", input="What is this?", temperature=1, max_output_tokens=900, text_format=Screen)
    assert isinstance(screen, Screen) and isinstance(again.output_parsed, Screen)
    print("parse(response_format=Screen): nested models, enums, unions, dates and bounds")


def check_samplers(base, key):
    body = dict(model="pocket", messages=[user("Say a lot", 0)], max_tokens=20, seed=4, temperature=1.5)
    ask = lambda **more: raw(base, key, dict(body, **more)).json()["choices"][0]["message"]["content"]
    assert ask(top_k=1) == ask(temperature=0) == ask(min_p=1)
    assert ask(top_k=40, min_p=0.05, presence_penalty=0.5, frequency_penalty=0.5, repetition_penalty=1.1) is not None
    print("top_k, min_p and penalties are taken")


def check_all(base, key, record):
    client = openai.OpenAI(base_url=base, api_key=key, max_retries=0)
    models = client.models.list().data
    assert [m.id for m in models] == ["pocket"]
    Model.model_validate(client.models.retrieve("pocket").model_dump())
    for name, request in REQUESTS.items():
        whole = check_whole(client, base, key, name, request, record)
        content, calls, finish = check_stream(client, base, key, name, request, record)
        if "seed" not in request:
            assert content == (whole.message.content or ""), (name, content, whole.message.content)
        assert finish == whole.finish_reason, name
        if name == "tool":
            call = whole.message.tool_calls[0].function
            Point.model_validate_json(call.arguments)
            assert calls[0] == [call.name, call.arguments] and finish == "tool_calls"
        if name == "schema":
            Point.model_validate_json(content)
        print(f"{name}: whole and streamed, {finish}")
    parsed = client.chat.completions.parse(model="pocket", messages=[user("Localise Save")], max_tokens=60,
                                           temperature=0, response_format=Point)
    assert isinstance(parsed.choices[0].message.parsed, Point)
    print("parse(response_format=Point): as the localisation step of the cookbook asks")
    check_responses(client, base, key, record)
    check_messages(base, key, record)
    check_codex(client)
    check_claude_code(base, key)
    check_schemas(client)
    check_samplers(base, key)
    check_errors(client, base)
    print("errors: NotFoundError, BadRequestError, AuthenticationError")


def main():
    words = sys.argv[1:]
    folder = words.pop(words.index("--record") + 1) if "--record" in words else None
    program = next((w for w in words if not w.startswith("--")), "./holorun")

    def record(name, text):
        if folder:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)

    with tempfile.TemporaryDirectory() as place:
        token, model = os.path.join(place, "token"), os.path.join(place, "pocket")
        root = os.path.join(os.path.dirname(__file__), "..", "..")
        shutil.copytree(os.path.join(root, "assets", "pocket", "model"), model)
        shutil.copy(os.path.join(root, "src", "text", "templates", "nemotron_vl.jinja"), os.path.join(model, "chat_template.jinja"))
        server = subprocess.Popen([program, "serve", "-m", model, "--listen", "127.0.0.1:0", "--token-file", token],
                                  stdout=subprocess.PIPE, text=True)
        try:
            base = server.stdout.readline().strip()
            with open(token, encoding="utf-8") as f:
                check_all(base, f.read().strip(), record)
        finally:
            server.terminate()
        assert server.wait(60) == 0, "the server did not end with 0"
    print(f"openai {openai.__version__}, anthropic {anthropic.__version__}: all shapes are theirs")


if __name__ == "__main__":
    main()
