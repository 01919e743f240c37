#!/usr/bin/env python3
"""Tests `holorun acp` with the client of the Python package `agent-client-protocol` on a private X server, and records
the messages of both sides for tests/serve/t_hosts.c.

    acp_client.py FOLDER_FOR_TRANSCRIPTS [CASE ...]
"""
import asyncio
import base64
import io
import os
import sys

import acp
import PIL.Image
from acp import schema

from mcp_client import HERE, LONG, PAY, ROOT, SAVE, Stage, call, on_desk


class Editor(acp.Client):
    def __init__(self, allow):
        self.allow = allow
        self.updates = []
        self.asked = []

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.append(tool_call)
        wanted = "allow_once" if self.allow else "reject_once"
        chosen = next(o for o in options if o.kind == wanted)
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def write_text_file(self, *a, **k):
        raise acp.RequestError.method_not_found("fs/write_text_file")

    async def read_text_file(self, *a, **k):
        raise acp.RequestError.method_not_found("fs/read_text_file")

    def kinds(self):
        return [u.session_update for u in self.updates]

    def said(self):
        return "".join(u.content.text for u in self.updates if u.session_update == "agent_message_chunk")


async def prompt(conn, session, text):
    return (await conn.prompt(session_id=session, prompt=[acp.text_block(text)])).stop_reason


async def begin(conn):
    r = await conn.initialize(protocol_version=1, client_capabilities=schema.ClientCapabilities())
    assert r.protocol_version == 1 and r.agent_capabilities.load_session, r
    return (await conn.new_session(cwd="/tmp", mcp_servers=[])).session_id


async def booking(stage, conn, editor):
    session = await begin(conn)
    assert await prompt(conn, session, "Press Save") == "end_turn"
    assert editor.said() == "Done.", editor.updates
    assert editor.kinds().count("tool_call") == 2, editor.kinds()
    pictures = [u for u in editor.updates if u.session_update == "tool_call_update" and u.content]
    assert len(pictures) == 2, editor.kinds()
    assert stage.seen("button_press") == 1


async def stop(stage, conn, editor):
    session = await begin(conn)
    turn = asyncio.ensure_future(prompt(conn, session, "Type a lot"))
    while stage.seen("key_press") < 10:
        await asyncio.sleep(0.01)
    await conn.cancel(session_id=session)
    assert await turn == "cancelled"
    n = stage.seen("key_press")
    await asyncio.sleep(0.3)
    assert stage.seen("key_press") == n


async def permission(stage, conn, editor):
    session = await begin(conn)
    assert await prompt(conn, session, "Pay") == "end_turn"
    assert len(editor.asked) == 1, editor.asked
    assert stage.seen("button_press") == (1 if editor.allow else 0)


async def twice(stage, conn, editor):
    session = await begin(conn)
    assert await prompt(conn, session, "Press Save") == "end_turn"
    assert await prompt(conn, session, "Press it again") == "end_turn"
    assert editor.said() == "Done.Again.", editor.said()
    assert stage.seen("button_press") == 2
    return session


async def lenient(stage, conn, editor):
    """Prompts as text, as JSON text and as one block; parameters that are null."""
    raw = conn._conn.send_request
    assert (await raw("initialize", {"protocolVersion": "1", "clientCapabilities": None, "_meta": None}))["protocolVersion"] == 1
    session = (await raw("session/new", {"cwd": None, "mcpServers": None}))["sessionId"]
    prompts = ["Press Save", '[{"type": "text", "text": "Press it again"}]', {"type": "text", "text": "Again"}]
    for text in prompts:
        assert (await raw("session/prompt", {"sessionId": session, "prompt": text}))["stopReason"] == "end_turn"
    assert editor.said() == "Done." * 3, editor.said()
    assert stage.seen("button_press") == 3
    for method, params, code in (("session/prompt", {"sessionId": session, "prompt": []}, -32602),
                                 ("session/prompt", {"sessionId": None, "prompt": "x"}, -32602),
                                 ("session/set_mode", None, -32601)):
        try:
            await raw(method, params)
            assert False, method
        except acp.RequestError as e:
            assert e.code == code, (method, e)


async def load(stage, conn, editor):
    session = await begin(conn)
    assert await prompt(conn, session, "Press Save") == "end_turn"
    with open(os.path.join(stage.dir, "session"), "w") as f:
        f.write(session)


async def loaded(stage, conn, editor):
    await conn.initialize(protocol_version=1, client_capabilities=schema.ClientCapabilities())
    with open(os.path.join(stage.dir, "session")) as f:
        session = f.read()
    await conn.load_session(cwd="/tmp", session_id=session, mcp_servers=[])
    assert editor.said() == "Done." and "user_message_chunk" in editor.kinds(), editor.updates
    assert await prompt(conn, session, "Press it again") == "end_turn"
    assert stage.seen("button_press") == 2


async def desk(stage, conn, editor):
    """Works on the private desktop: the caller's display gets no event and no connection."""
    session = await begin(conn)
    assert await prompt(conn, session, "Press Save") == "end_turn"
    pictures = [c.content for u in editor.updates if u.session_update == "tool_call_update" for c in u.content or []]
    sizes = [PIL.Image.open(io.BytesIO(base64.b64decode(p.data))).size for p in pictures]
    assert sizes and set(sizes) == {(1000, 700)}, sizes
    there = stage.events_of(stage.dir + "/desk")
    assert there.count("button_press") == 1 and there.count("key_press") >= 3, there
    stage.untouched()


PLAN = [call("plan", goals=[])]
TWICE = SAVE + [call("click_desktop", element="it", x=300, y=300), call("answer", content="Again.")]
CASES = {
    "booking": (SAVE, [booking], True),
    "stop": (LONG, [stop], True),
    "allowed": (PAY, [permission], True),
    "denied": (PAY, [permission], False),
    "twice": (TWICE, [twice], True),
    "lenient": (SAVE * 3, [lenient], True),
    "load": (SAVE, [load, loaded], True),
    "desk": (SAVE, [desk], True, on_desk),
}


async def run(stage, replies, transcript, what, allow, more):
    script = os.path.join(stage.dir, "script")
    with open(script, "w") as f:
        f.write("\n".join(replies) + "\n")
    editor = Editor(allow)
    words = [HERE + "/tee.py", transcript, ROOT + "/holorun", "acp", "--quiet", "--fake", script, "--runs",
             stage.dir + "/runs", "--settle-min", "1", "--settle-quiet", "30", *more]
    async with acp.spawn_agent_process(editor, sys.executable, *words, env=dict(os.environ),
                                       transport_kwargs={"limit": 64 << 20}) as (conn, process):
        await what(stage, conn, editor)


async def main():
    folder, wanted = sys.argv[1], sys.argv[2:] or CASES
    os.makedirs(folder, exist_ok=True)
    for name in wanted:
        replies, parts, allow, *more = CASES[name]
        stage = Stage()
        try:
            more = more[0](stage) if more else []
            for i, what in enumerate(parts):
                await run(stage, replies, "%s/acp-%s%s.jsonl" % (folder, name, i or ""), what, allow, more)
            print("ok  ", name, flush=True)
        finally:
            stage.close()


if __name__ == "__main__":
    asyncio.run(main())
