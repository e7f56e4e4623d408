"""The SDK `openai`: chat completions and responses."""

import json

import openai
from pydantic import BaseModel
from turns import BASE_URL, KEY, QUESTION, SCHEMA, look, report, turn

client = openai.OpenAI(base_url=f"{BASE_URL}/v1", api_key=KEY, max_retries=0)
CHAT_TOOLS = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
TOOLS = [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}]


class Count(BaseModel):
    birds: int


def ask_chat(model, messages, stream):
    params = {"model": model, "messages": messages, "tools": CHAT_TOOLS, "reasoning_effort": "low"}
    if stream:
        with client.chat.completions.stream(**params, stream_options={"include_usage": True}) as events:
            completion = events.get_final_completion()
    else:
        completion = client.chat.completions.create(**params)
    message, usage = completion.choices[0].message, completion.usage
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
    tokens = [usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens, usage.completion_tokens]
    return message, turn(message.content, calls, tokens)


def chat(stream):
    def run(model):
        messages = [{"role": "user", "content": QUESTION}]
        message, first = ask_chat(model, messages, stream)
        messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
        for call in message.tool_calls:
            result = look(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        for call in messages[1]["tool_calls"]:
            # Of a parsed stream, a call has its arguments as an object too.
            call["function"].pop("parsed_arguments", None)
            call.pop("index", None)
        return [first, ask_chat(model, messages, stream)[1]]

    return run


def ask_responses(model, items, stream):
    params = {
        "model": model, "input": items, "tools": TOOLS, "store": False,
        "reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"],
    }
    if stream:
        with client.responses.stream(**params) as events:
            response = events.get_final_response()
    else:
        response = client.responses.create(**params)
    calls = [(item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
    usage = response.usage
    tokens = [usage.input_tokens, usage.input_tokens_details.cached_tokens, usage.output_tokens]
    return response, turn(response.output_text, calls, tokens)


def responses(stream):
    def run(model):
        items = [{"role": "user", "content": QUESTION}]
        response, first = ask_responses(model, items, stream)
        items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
        for item in response.output:
            if item.type == "function_call":
                result = look(**json.loads(item.arguments))
                items.append({"type": "function_call_output", "call_id": item.call_id, "output": result})
        for item in items:
            for part in item.get("content", []) if isinstance(item.get("content"), list) else []:
                part.pop("parsed", None)
        return [first, ask_responses(model, items, stream)[1]]

    return run


def structured_chat(model):
    messages = [{"role": "user", "content": QUESTION}]
    completion = client.chat.completions.parse(model=model, messages=messages, response_format=Count)
    return completion.choices[0].message.parsed.birds


def structured_responses(model):
    return client.responses.parse(model=model, input=QUESTION, text_format=Count, store=False).output_parsed.birds


report({
    "chat": chat(False), "chat stream": chat(True), "chat structured": structured_chat,
    "responses": responses(False), "responses stream": responses(True), "responses structured": structured_responses,
})
