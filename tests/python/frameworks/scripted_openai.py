"""A model of OpenAI Agents that says what a test has written: the SDK's own where it ships one."""

import json


def said(text):
    """A message of the assistant."""
    return ("message", text)


def call(name, arguments):
    """A call of a tool."""
    return ("call", name, arguments)


def _items(step, at):
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    if step[0] == "message":
        text = ResponseOutputText(text=step[1], type="output_text", annotations=[], logprobs=[])
        return [ResponseOutputMessage(id=f"m{at}", content=[text], role="assistant", status="completed", type="message")]
    return [ResponseFunctionToolCall(call_id=f"c{at}", name=step[1], arguments=json.dumps(step[2]), type="function_call", id=f"f{at}")]


def model_of(*steps):
    """A model with what it was asked: `inputs`, and the `instructions` of each."""
    try:
        from agents.testing import ScriptedModel
    except ImportError:
        return _own_model(steps)

    class Recorded(ScriptedModel):
        @property
        def inputs(self):
            return [list(one.input) for one in self.calls]

        @property
        def instructions(self):
            return [one.system_instructions for one in self.calls]

    model = Recorded()
    for at, step in enumerate(steps):
        model.enqueue(_items(step, at))
    return model


def _own_model(steps):
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage

    class Scripted(Model):
        def __init__(self):
            self.steps, self.inputs, self.instructions = list(enumerate(steps)), [], []

        async def get_response(self, system_instructions, input, *_, **__):
            self.instructions.append(system_instructions)
            self.inputs.append([{"role": "user", "content": input}] if isinstance(input, str) else list(input))
            at, step = self.steps.pop(0)
            return ModelResponse(output=_items(step, at), usage=Usage(), response_id=None)

        async def stream_response(self, *_, **__):
            raise NotImplementedError
            yield

    return Scripted()
