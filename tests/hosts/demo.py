#!/usr/bin/env python3
"""Books the demo's flight through `holorun mcp` with the embedded model and the Python package `mcp`.

    demo.py TASK     on $DISPLAY, which already shows the page (tests/hosts/demo.sh)
"""
import asyncio
import os
import sys

from mcp import Client, StdioServerParameters

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


async def main():
    # Starting the demo requests the booking, so the rules need not ask.
    server = StdioServerParameters(command=ROOT + "/holorun", args=["mcp", "--confirm", "yes-to-all"], env=dict(os.environ))
    async with Client(server, mode="auto") as client:
        r = (await client.call_tool("run_task", {"task": sys.argv[1], "wait_s": 5})).structured_content
        while r["status"] == "running":
            print("step", r["step"], r.get("last_action", ""))
            r = (await client.call_tool("run_status", {"run_id": r["run_id"], "wait_s": 5})).structured_content
        print(client.protocol_version, r["status"], r.get("answer", ""), "%.1f s" % r["seconds"])


asyncio.run(main())
