#!/usr/bin/env python3
"""Drives `holorun serve` with the openai package: every shape that we emit is parsed by its own types.

    serve_clients.py [PROGRAM] [--record FOLDER]      default: ./holorun

Starts the server on a free port with the embedded model, sends one request of each kind, and validates each reply
and each event strictly (pydantic's model_validate refuses a wrong type or an unknown finish_reason).  --record also
writes the bytes of each reply, which tests read without the package.  Exit code 0 when all are as they should be.
"""
import base64
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

import httpx
import openai
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

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
    try:
        openai.OpenAI(base_url=base, api_key="wrong", max_retries=0).models.list()
    except openai.AuthenticationError:
        return
    raise AssertionError("a wrong token was taken")


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
        token = os.path.join(place, "token")
        server = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0", "--token-file", token],
                                  stdout=subprocess.PIPE, text=True)
        try:
            base = server.stdout.readline().strip()
            with open(token, encoding="utf-8") as f:
                check_all(base, f.read().strip(), record)
        finally:
            server.terminate()
        assert server.wait(60) == 0, "the server did not end with 0"
    print(f"openai {openai.__version__}: all shapes are its own")


if __name__ == "__main__":
    main()
