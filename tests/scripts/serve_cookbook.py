#!/usr/bin/env python3
"""Repeats the steps of H's published notebooks against `holorun serve`, with only the base URL changed.

    serve_cookbook.py [PROGRAM]      default: ./holorun

Independent code for the requests of H Company's hai-cookbook: the image as JPEG in a data URL before the text,
resized as by the family's processor; localization as text, under guided_json and under structured_outputs, in pixels
and from 0 to 1000; a navigation step under the schema of a union of actions; and the agent loop, which sends its last
three screenshots. The schemas come from pydantic. The embedded model answers, so only the form of the answers is
checked.
"""
import base64
import io
import json
import math
import subprocess
import sys
import tempfile
from typing import Literal

import openai
from PIL import Image, ImageDraw
from pydantic import BaseModel, Field

NAME = "Hcompany/Holo1-3B"


class Spot(BaseModel):
    """A place to click"""
    action: Literal["click"] = "click"
    x: int
    y: int


class Scaled(BaseModel):
    x: int = Field(ge=0, le=1000, description="from 0 to 1000")
    y: int = Field(ge=0, le=1000, description="from 0 to 1000")


class Press(BaseModel):
    """Press an element"""
    action: Literal["click_element"] = Field(description="press it")
    element: str = Field(description="in words")
    x: int
    y: int


class Write(BaseModel):
    action: Literal["write_element_abs"] = Field(description="write and confirm")
    content: str
    element: str
    x: int
    y: int


class Scroll(BaseModel):
    action: Literal["scroll"]
    direction: Literal["down", "up", "left", "right"]


class Wait(BaseModel):
    action: Literal["wait"]
    seconds: int = Field(default=2, ge=0, le=10)


class Restart(BaseModel):
    action: Literal["restart"] = "restart"


class Answer(BaseModel):
    action: Literal["answer"] = "answer"
    content: str


class Step(BaseModel):
    note: str = Field(default="", description="what the last screenshot showed")
    thought: str = Field(description="why (<4 lines)")
    action: Press | Write | Scroll | Wait | Restart | Answer = Field(description="what next")


def resized(picture, factor, least, most):
    """Returns an image whose sides are multiples of the factor, within the limits of pixels, with about the same aspect
    ratio.
    """
    width, height = picture.size
    sides = [round(side / factor) * factor for side in (height, width)]
    if sides[0] * sides[1] > most:
        by = math.sqrt(height * width / most)
        sides = [math.floor(side / by / factor) * factor for side in (height, width)]
    elif sides[0] * sides[1] < least:
        by = math.sqrt(least / (height * width))
        sides = [math.ceil(side * by / factor) * factor for side in (height, width)]
    return picture.resize((sides[1], sides[0]))


def screenshot(step=0):
    picture = Image.new("RGB", (800, 500), (236, 236, 240))
    draw = ImageDraw.Draw(picture)
    for row in range(5):
        for column in range(7):
            day = row * 7 + column + 1
            box = (40 + column * 100, 60 + row * 80, 130 + column * 100, 130 + row * 80)
            draw.rectangle(box, fill=(120, 200, 130) if day == 3 + step else "white", outline="black")
            draw.text((box[0] + 8, box[1] + 8), str(day), fill="black")
    return picture


def part(picture):
    data = io.BytesIO()
    picture.save(data, format="JPEG", quality=90)
    return {"type": "image_url",
            "image_url": {"url": "data:image/jpeg;base64," + base64.b64encode(data.getvalue()).decode()}}


def ask(client, messages, temperature=0, **more):
    reply = client.chat.completions.create(model=NAME, messages=messages, temperature=temperature, **more)
    print(f"   {reply.usage.prompt_tokens} tokens, {reply.usage.prompt_tokens_details.cached_tokens} of them cached")
    return reply.choices[0].message.content


def localise(client):
    picture = resized(screenshot(), 28, 56 * 56, 14 * 14 * 4 * 1280)
    where = {"role": "user", "content": [part(picture), {"type": "text", "text":
             "Find the element that I name on the screenshot, and say where to click as Click(x, y) in pixels.\n14 July"}]}
    print("localisation, as text")
    ask(client, [where], max_tokens=64)
    for name, extra, shape in (("guided_json", lambda s: {"guided_json": s}, Spot),
                               ("structured_outputs", lambda s: {"structured_outputs": {"json": s}}, Scaled)):
        print(f"localisation under {name}")
        schema = shape.model_json_schema()
        system = [{"role": "system", "content": json.dumps([schema])}] if shape is Spot else []
        shape.model_validate_json(ask(client, system + [where], extra_body=extra(schema)))


def navigate(client, steps):
    """Runs the loop: task and observation in tags, at most three screenshots, replies returned unchanged."""
    schema = Step.model_json_schema()
    messages = [{"role": "system", "content": [{"type": "text", "text": f"You drive a browser. Reply in this form: {schema}"}]}]
    for step in range(1, steps + 1):
        messages.append({"role": "user", "content": (
            [{"type": "text", "text": "<task>\nBook a hotel for three nights\n</task>\n"}] if step == 1 else []) + [
                {"type": "text", "text": f"<observation step={step}>\n<screenshot>\n"},
                part(resized(screenshot(step), 28, 56 * 56, 14 * 14 * 4 * 1280)),
                {"type": "text", "text": "\n</screenshot>\n</observation>\n"}]})
        pictures = [m for m in messages if m["role"] == "user" and any(p["type"] == "image_url" for p in m["content"])]
        for old in pictures[:-3]:
            old["content"] = [p if p["type"] == "text" else {"type": "text", "text": "(left out)"} for p in old["content"]]
        print(f"step {step} of the loop")
        for seed in range(20): # the embedded model was not trained on such texts, so few replies end
            said = ask(client, messages, temperature=2, seed=seed, max_tokens=400, extra_body={"guided_json": schema})
            if said.endswith("}"):
                break
        print(f"   {type(Step.model_validate_json(said).action).__name__}")
        messages.append({"role": "assistant", "content": said})


def main():
    program = (sys.argv[1:] + ["./holorun"])[0]
    with tempfile.TemporaryDirectory() as place:
        server = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0", "--served-name", NAME,
                                   "--token-file", f"{place}/token"], stdout=subprocess.PIPE, text=True)
        try:
            base = server.stdout.readline().strip()
            with open(f"{place}/token", encoding="utf-8") as f:
                client = openai.OpenAI(base_url=base, api_key=f.read().strip(), max_retries=0)
            localise(client)
            navigate(client, 4)
        finally:
            server.terminate()
        assert server.wait(60) == 0
    print("all steps of the cookbook are answered in their form")


if __name__ == "__main__":
    main()
