"""LiteLLM as a library: its OpenAI, Anthropic and Gemini routes with the gateway as base address."""
import litellm

from driver import KEY, QUESTION, URL, WEATHER, main

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tells the weather of a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


def surface(prefix, base):
    def ask(model, messages, **more):
        return litellm.completion(
            model=f"{prefix}/{model}", messages=messages, api_base=base, api_key=KEY, num_retries=0, **more
        )

    asked = [{"role": "user", "content": QUESTION}]

    def text(model):
        return ask(model, asked).choices[0].message.content

    def stream(model):
        return "".join(chunk.choices[0].delta.content or "" for chunk in ask(model, asked, stream=True))

    def loop(model):
        chunks = list(ask(model, asked, tools=TOOLS, stream=True))
        message = litellm.stream_chunk_builder(chunks, messages=asked).choices[0].message
        results = [
            {"role": "tool", "tool_call_id": call.id, "name": "weather", "content": WEATHER}
            for call in message.tool_calls
        ]
        return ask(model, [*asked, message, *results], tools=TOOLS).choices[0].message.content

    return {"text": text, "stream": stream, "loop": loop}


main(
    {
        "chat": lambda: surface("openai", f"{URL}/v1"),
        "messages": lambda: surface("anthropic", URL),
        "generate": lambda: surface("gemini", f"{URL}/v1beta"),
    }
)
