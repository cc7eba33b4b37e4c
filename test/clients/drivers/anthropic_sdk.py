"""Anthropic's SDK for Python: messages, with thinking that goes back in the second turn."""
from anthropic import Anthropic

from driver import KEY, QUESTION, URL, WEATHER, main

TOOLS = [
    {
        "name": "weather",
        "description": "Tells the weather of a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]


def messages():
    client = Anthropic(base_url=URL, auth_token=KEY, max_retries=0)
    common = {"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    asked = [{"role": "user", "content": QUESTION}]

    def said(message):
        return "".join(block.text for block in message.content if block.type == "text")

    def final(**body):
        with client.messages.stream(**body, **common) as events:
            return events.get_final_message()

    def text(model):
        return said(client.messages.create(model=model, messages=asked, **common))

    def stream(model):
        return said(final(model=model, messages=asked))

    def loop(model):
        first = final(model=model, messages=asked, tools=TOOLS)
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": WEATHER}
            for block in first.content
            if block.type == "tool_use"
        ]
        turns = [*asked, {"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
        return said(final(model=model, messages=turns, tools=TOOLS))

    return {"text": text, "stream": stream, "loop": loop}


main({"messages": messages})
