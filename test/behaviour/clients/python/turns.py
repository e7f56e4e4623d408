"""What the scripts of all SDKs share: the tool, and how they report what they read."""

import json
import sys

BASE_URL, KEY, *MODELS = sys.argv[1:]

SCHEMA = {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}
QUESTION = "Look"


def look(at: int) -> str:
    """Looks at a place.

    Args:
        at: the place
    """
    return f"a bird at {at} 🐦"


def turn(text, calls, tokens):
    """@param calls: (name, arguments) of each; tokens: of input, cached input and output"""
    return {"text": text, "calls": [[name, arguments] for name, arguments in calls], "tokens": tokens}


def report(run):
    """Runs every way of asking with every model, and prints what each read, or how it failed."""
    read = {}
    for model in MODELS:
        for way in run:
            try:
                result = run[way](model)
            except Exception as error:  # whatever it is, the test shows it
                result = f"{type(error).__name__}: {error}"
            read[f"{model} {way}"] = result
    print(json.dumps(read))
