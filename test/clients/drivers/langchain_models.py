"""LangChain for Python: the three providers' chat models behind one interface."""
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

from driver import KEY, QUESTION, URL, WEATHER, main, weather


def surface(chat_of):
    def text(model):
        return chat_of(model).invoke(QUESTION).text

    def stream(model):
        return "".join(chunk.text for chunk in chat_of(model).stream(QUESTION))

    def loop(model):
        chat = chat_of(model).bind_tools([weather])
        asked = [HumanMessage(QUESTION)]
        said = None
        for chunk in chat.stream(asked):
            said = chunk if said is None else said + chunk
        results = [
            ToolMessage(WEATHER, tool_call_id=call["id"], name=call["name"]) for call in said.tool_calls
        ]
        return chat.invoke([*asked, said, *results]).text

    return {"text": text, "stream": stream, "loop": loop}


def openai(**more):
    return surface(
        lambda model: ChatOpenAI(model=model, api_key=KEY, base_url=f"{URL}/v1", max_retries=0, **more)
    )


main(
    {
        "chat": lambda: openai(use_responses_api=False),
        "responses": lambda: openai(use_responses_api=True),
        "messages": lambda: surface(
            lambda model: ChatAnthropic(model=model, api_key=KEY, base_url=URL, max_retries=0)
        ),
        "generate": lambda: surface(
            lambda model: ChatGoogleGenerativeAI(
                model=model, google_api_key=KEY, base_url=URL, max_retries=1, include_thoughts=True
            )
        ),
    }
)
