"""pydantic-ai: an agent with a tool over each provider's model, whole and streamed."""
import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from driver import KEY, QUESTION, URL, main, weather


def surface(model_of):
    async def streamed(agent):
        async with agent.run_stream(QUESTION) as result:
            return "".join([piece async for piece in result.stream_text(delta=True)])

    def text(model):
        return Agent(model_of(model)).run_sync(QUESTION).output

    def stream(model):
        return asyncio.run(streamed(Agent(model_of(model))))

    def loop(model):
        whole = Agent(model_of(model), tools=[weather]).run_sync(QUESTION).output
        said = asyncio.run(streamed(Agent(model_of(model), tools=[weather])))
        return said if said == whole else f"whole {whole!r}, streamed {said!r}"

    return {"text": text, "stream": stream, "loop": loop}


def openai():
    return OpenAIProvider(base_url=f"{URL}/v1", api_key=KEY)


main(
    {
        "chat": lambda: surface(lambda model: OpenAIChatModel(model, provider=openai())),
        "responses": lambda: surface(lambda model: OpenAIResponsesModel(model, provider=openai())),
        "messages": lambda: surface(
            lambda model: AnthropicModel(model, provider=AnthropicProvider(base_url=URL, api_key=KEY))
        ),
        "generate": lambda: surface(
            lambda model: GoogleModel(model, provider=GoogleProvider(base_url=URL, api_key=KEY))
        ),
    }
)
