"""The SDK `google-genai`: generate content, and its chats, which run tools themselves."""

from google import genai
from google.genai import types
from pydantic import BaseModel
from turns import BASE_URL, KEY, QUESTION, SCHEMA, look, report, turn

client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=BASE_URL))
DECLARED = types.Tool(function_declarations=[types.FunctionDeclaration(name="look", parameters_json_schema=SCHEMA)])
THINKING = types.ThinkingConfig(include_thoughts=True)


class Count(BaseModel):
    birds: int


def read(parts, usage):
    text = "".join(part.text for part in parts if part.text and not part.thought)
    calls = [(part.function_call.name, part.function_call.args) for part in parts if part.function_call]
    tokens = [
        usage.prompt_token_count, usage.cached_content_token_count,
        usage.candidates_token_count + (usage.thoughts_token_count or 0),
    ]
    return turn(text, calls, tokens)


def ask(model, contents, stream):
    config = types.GenerateContentConfig(tools=[DECLARED], thinking_config=THINKING)
    params = {"model": model, "contents": contents, "config": config}
    models = client.models
    chunks = list(models.generate_content_stream(**params)) if stream else [models.generate_content(**params)]
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
    return parts, read(parts, chunks[-1].usage_metadata)


def generate(stream):
    def run(model):
        contents = [types.UserContent(QUESTION)]
        parts, first = ask(model, contents, stream)
        results = [
            types.Part(function_response=types.FunctionResponse(
                id=part.function_call.id, name=part.function_call.name, response={"result": look(**part.function_call.args)},
            ))
            for part in parts if part.function_call
        ]
        contents += [types.ModelContent(parts), types.UserContent(results)]
        return [first, ask(model, contents, stream)[1]]

    return run


def chat(model):
    session = client.chats.create(model=model, config=types.GenerateContentConfig(tools=[look], thinking_config=THINKING))
    session.send_message(QUESTION)
    # The whole history: question, calls, results and what came of them.
    turns = [content.parts for content in session.get_history() if content.role == "model"]
    return [[part.text for part in parts if part.text and not part.thought] for parts in turns]


def structured(model):
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Count)
    return client.models.generate_content(model=model, contents=QUESTION, config=config).parsed.birds


report({"generate": generate(False), "generate stream": generate(True), "chat": chat, "structured": structured})
