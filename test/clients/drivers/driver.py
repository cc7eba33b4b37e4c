"""What every Python driver shares: runs the named tasks of a surface and prints what its user would read, one line a task."""
import os
import sys
import traceback

QUESTION = "What is the weather in Ghent?"
WEATHER = "rain"
URL = os.environ.get("WEIR_URL", "")
KEY = os.environ.get("WEIR_KEY", "")


def weather(city: str) -> str:
    """Tells the weather of a city.

    Args:
        city: The city's name.
    """
    return WEATHER


def status_of(error):
    """The HTTP status that an SDK's error carries, under one of its usual names."""
    for name in ("status_code", "http_status", "code", "status"):
        value = getattr(error, name, None)
        if isinstance(value, int):
            return value
    cause = error.__cause__ or error.__context__
    return status_of(cause) if cause else None


def main(surfaces):
    """`surfaces`: name -> {task: function of the model}."""
    surface, model, task = sys.argv[1:4]
    client = surfaces[surface]()
    tasks = [each for each in ("text", "stream", "loop") if each in client] if task == "basics" else [task]
    try:
        for each in tasks:
            print(f"{each}: {client[each](model).strip()}")
    except Exception as error:
        print(f"error: {status_of(error)} {str(error)[:500]}")
        traceback.print_exc()
        sys.exit(3)
