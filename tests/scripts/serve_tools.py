#!/usr/bin/env python3
"""Tests tools of `holorun serve` with the openai and anthropic packages on models with published chat templates.

    serve_tools.py [PROGRAM] [HELPER]     default: ./holorun build/release/helpers/tiny_dirs_write

The models are small and random (tests/support/tiny_dirs.h), so each turn requires a call, whose arguments the grammar
constrains to the schema. For each template: four turns with a call and its result, then an answer, in Chat
Completions, Responses and Messages, streamed and not. Prints one line for each; exits with 0 if all are right.
"""
import json
import subprocess
import sys
import tempfile

import anthropic
import openai

FAMILIES = ["qwen3_5_nothink", "qwen3_5_think", "qwen3_6", "qwen3_8", "qwen3_vl", "nemotron_3_nano", "nemotron_3_super"]
SCHEMA = {"type": "object", "required": ["button", "times"], "properties": {
    "button": {"type": "string", "enum": ["left", "right"]}, "times": {"type": "integer", "minimum": 1, "maximum": 9},
    "hold": {"type": "boolean"}}}
TURNS = 4
TASK = "Press the buttons."


def check(arguments):
    assert arguments["button"] in SCHEMA["properties"]["button"]["enum"], arguments
    assert 1 <= arguments["times"] <= 9 and set(arguments) <= set(SCHEMA["properties"]), arguments


def chat(client, stream):
    tools = [{"type": "function", "function": {"name": "press", "description": "Presses.", "parameters": SCHEMA}}]
    messages = [{"role": "user", "content": TASK}]
    for _ in range(TURNS):
        request = dict(model=client.model_name, messages=messages, tools=tools, tool_choice="required", max_tokens=300,
                       temperature=0, reasoning_effort="none")
        if stream:
            with client.chat.completions.stream(**request) as events:
                for _ in events:
                    pass
                message = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**request).choices[0].message
        call = message.tool_calls[0]
        check(json.loads(call.function.arguments))
        messages.append({"role": "assistant", "content": message.content, "tool_calls": [
            {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}]})
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "done"})
    last = client.chat.completions.create(model=client.model_name, messages=messages, tools=tools, max_tokens=5)
    assert last.usage.prompt_tokens_details.cached_tokens > 0
    return last.usage.prompt_tokens


def responses(client, stream):
    tools = [{"type": "function", "name": "press", "description": "Presses.", "parameters": SCHEMA, "strict": False}]
    items = [{"role": "user", "content": [{"type": "input_text", "text": TASK}]}]
    for _ in range(TURNS):
        request = dict(model=client.model_name, input=items, tools=tools, tool_choice="required", max_output_tokens=300,
                       temperature=0, store=False, reasoning={"effort": "none"})
        if stream:
            with client.responses.stream(**request) as events:
                for _ in events:
                    pass
                reply = events.get_final_response()
        else:
            reply = client.responses.create(**request)
        call = next(i for i in reply.output if i.type == "function_call")
        check(json.loads(call.arguments))
        items += [i.model_dump(exclude_none=True) for i in reply.output]
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": "done"})
    last = client.responses.create(model=client.model_name, input=items, tools=tools, max_output_tokens=5, store=False)
    assert last.usage.input_tokens_details.cached_tokens > 0
    return last.usage.input_tokens


def messages_api(client, stream):
    tools = [{"name": "press", "description": "Presses.", "input_schema": SCHEMA}]
    messages = [{"role": "user", "content": TASK}]
    for _ in range(TURNS):
        request = dict(model=client.model_name, messages=messages, tools=tools, tool_choice={"type": "any"}, max_tokens=300,
                       thinking={"type": "disabled"}, extra_body={"temperature": 0})
        if stream:
            with client.messages.stream(**request) as events:
                reply = events.get_final_message()
        else:
            reply = client.messages.create(**request)
        call = next(b for b in reply.content if b.type == "tool_use")
        assert reply.stop_reason == "tool_use", reply.stop_reason
        check(call.input)
        messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in reply.content]})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "done"}]})
    last = client.messages.create(model=client.model_name, messages=messages, tools=tools, max_tokens=5)
    count = client.messages.count_tokens(model=client.model_name, messages=messages, tools=tools)
    used = last.usage.input_tokens + (last.usage.cache_read_input_tokens or 0)
    assert count.input_tokens == used, (count, last.usage)
    return used


def drive(program, family, folder):
    with tempfile.NamedTemporaryFile("w", suffix=".token") as token:
        token.write("sesame-open-sesame")
        token.flush()
        server = subprocess.Popen([program, "serve", "-m", folder, "--listen", "127.0.0.1:0", "--token-file", token.name],
                                  stdout=subprocess.PIPE, text=True)
        try:
            base = server.stdout.readline().strip()
            key = "sesame-open-sesame"
            gpt = openai.OpenAI(base_url=base, api_key=key, max_retries=0)
            claude = anthropic.Anthropic(base_url=base.removesuffix("/v1"), api_key=key, max_retries=0)
            gpt.model_name = claude.model_name = gpt.models.list().data[0].id
            for stream in (False, True):
                n = [chat(gpt, stream), responses(gpt, stream), messages_api(claude, stream)]
                assert len(set(n)) == 1, f"the protocols have prompts of {n} tokens"
                print(f"{family:20s} {'streamed' if stream else 'whole':8s} chat, responses, messages: {TURNS} calls each, "
                      f"{n[0]} tokens at the end", flush=True)
        finally:
            server.terminate()
            server.wait(60)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "./holorun"
    helper = sys.argv[2] if len(sys.argv) > 2 else "build/release/helpers/tiny_dirs_write"
    writer = subprocess.Popen([helper, *FAMILIES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        for line in [writer.stdout.readline().split() for _ in FAMILIES]:
            drive(program, *line)
    finally:
        writer.stdin.close()
        writer.wait(60)


if __name__ == "__main__":
    main()
