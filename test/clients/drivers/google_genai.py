"""Google's Gen AI SDK for Python: whole, streamed, and its own loop of function calls."""
from google import genai
from google.genai import types

from driver import KEY, QUESTION, URL, main, weather


def generate():
    client = genai.Client(api_key=KEY, vertexai=False, http_options=types.HttpOptions(base_url=URL))
    thinking = types.ThinkingConfig(include_thoughts=True)

    def ask(**more):
        return types.GenerateContentConfig(thinking_config=thinking, **more)

    def text(model):
        return client.models.generate_content(model=model, contents=QUESTION, config=ask()).text

    def stream(model):
        chunks = client.models.generate_content_stream(model=model, contents=QUESTION, config=ask())
        return "".join(chunk.text or "" for chunk in chunks)

    def loop(model):
        chat = client.chats.create(model=model, config=ask(tools=[weather]))
        whole = chat.send_message(QUESTION).text
        again = client.chats.create(model=model, config=ask(tools=[weather]))
        said = "".join(chunk.text or "" for chunk in again.send_message_stream(QUESTION))
        return said if said == whole else f"whole {whole!r}, streamed {said!r}"

    return {"text": text, "stream": stream, "loop": loop}


main({"generate": generate})
