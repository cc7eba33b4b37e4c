"""OpenAI's SDK for Python: chat completions and responses."""
from openai import OpenAI

from driver import KEY, QUESTION, URL, WEATHER, main

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
NAMED = {"name": "weather", "description": "Tells the weather of a city.", "parameters": SCHEMA}


def client():
    return OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)


def chat():
    ask = client().chat.completions
    messages = [{"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "function": NAMED}]

    def text(model):
        return ask.create(model=model, messages=messages).choices[0].message.content

    def stream(model):
        chunks = ask.create(model=model, messages=messages, stream=True, stream_options={"include_usage": True})
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    def loop(model):
        message = ask.create(model=model, messages=messages, tools=tools).choices[0].message
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": WEATHER} for call in message.tool_calls
        ]
        return ask.create(model=model, messages=[*messages, message, *results], tools=tools).choices[0].message.content

    return {"text": text, "stream": stream, "loop": loop}


def responses():
    ask = client().responses
    tools = [{"type": "function", **NAMED, "strict": True}]
    common = {"store": False, "include": ["reasoning.encrypted_content"]}

    def final(**body):
        with ask.stream(**body, **common) as events:
            return events.get_final_response()

    def text(model):
        return ask.create(model=model, input=QUESTION, **common).output_text

    def stream(model):
        return final(model=model, input=QUESTION).output_text

    def loop(model):
        asked = [{"role": "user", "content": QUESTION}]
        output = final(model=model, input=asked, tools=tools).output
        results = [
            {"type": "function_call_output", "call_id": item.call_id, "output": WEATHER}
            for item in output
            if item.type == "function_call"
        ]
        return final(model=model, input=[*asked, *output, *results], tools=tools).output_text

    return {"text": text, "stream": stream, "loop": loop}


main({"chat": chat, "responses": responses})
