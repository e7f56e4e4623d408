"""The SDK `anthropic`: messages, and its loop that runs tools."""

import anthropic
from anthropic import beta_tool
from pydantic import BaseModel
from turns import BASE_URL, KEY, QUESTION, SCHEMA, look, report, turn

client = anthropic.Anthropic(base_url=BASE_URL, api_key=KEY, max_retries=0)
TOOLS = [{"name": "look", "input_schema": SCHEMA}]
THINKING = {"type": "enabled", "budget_tokens": 2000}


class Count(BaseModel):
    birds: int


def read(message):
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    usage = message.usage
    cached = usage.cache_read_input_tokens or 0
    return turn(text, calls, [usage.input_tokens + cached, cached, usage.output_tokens])


def ask(model, messages, stream):
    params = {"model": model, "max_tokens": 9000, "messages": messages, "tools": TOOLS, "thinking": THINKING}
    if not stream:
        return client.messages.create(**params)
    with client.messages.stream(**params) as events:
        return events.get_final_message()


def messages(stream):
    def run(model):
        conversation = [{"role": "user", "content": QUESTION}]
        first = ask(model, conversation, stream)
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": look(**block.input)}
            for block in first.content if block.type == "tool_use"
        ]
        conversation += [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
        return [read(first), read(ask(model, conversation, stream))]

    return run


def tool_runner(model):
    runner = client.beta.messages.tool_runner(
        model=model, max_tokens=9000, messages=[{"role": "user", "content": QUESTION}], tools=[beta_tool(look)], thinking=THINKING,
    )
    return [read(message) for message in runner]


def structured(model):
    asked = [{"role": "user", "content": QUESTION}]
    return client.messages.parse(model=model, max_tokens=9000, messages=asked, output_format=Count).parsed_output.birds


report({"messages": messages(False), "messages stream": messages(True), "tool runner": tool_runner, "structured": structured})
