#!/usr/bin/env python3
"""A scripted model on 127.0.0.1 that coding agents can be pointed at, to make real transcripts without a model.

Speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini generateContent, streamed or whole.
A script is JSON: {"rules": [{"when": REGEX, "replies": [REPLY, ...]}, ...], "default": [REPLY, ...]}.
The first rule whose REGEX is found in the last message that a person wrote answers; how many model messages follow
that message says which REPLY. REPLY: {"text": ..., "thinking": ..., "shell": COMMAND, "write": [PATH, CONTENT],
"call": [TOOL, {ARGUMENTS}]}, each optional. "shell" and "write" find the agent's own tool among those it declares.
Keeps no state between requests, so a fork, a retry or a resume is answered by what it sends.

    scripted_model.py --script story.json [--port 8099] [--log requests.jsonl]
"""
import argparse
import json
import re
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SHELL = ("bash", "shell", "shell_command", "exec_command", "run_shell_command", "execute_command",
         "developer__shell", "run_terminal_command", "local_shell")
WRITE = ("write", "write_file", "write_to_file", "create_file", "text_editor")
# What agents add around a person's words. A message that holds nothing else is not a person's.
WRAPPED = re.compile(r"<(system-reminder|environment_context|session_context|user_instructions|permissions[^>]*"
                     r"|collaboration_mode|skills_instructions|turn_aborted|local-command-[a-z]+|env)\b.*?</\1[^>]*>", re.S)


def plain(content):
    """The text of a message's content in any of the four dialects."""
    if isinstance(content, str):
        return WRAPPED.sub("", content).strip()
    texts = [part.get("text") or "" for part in content or [] if isinstance(part, dict)]
    return "\n".join(t for t in (WRAPPED.sub("", text).strip() for text in texts) if t)


def person(message):
    """Whether a message is a person's and not a tool's result or the agent's own context."""
    if message.get("role") != "user":
        return False
    content = message.get("content", message.get("parts"))
    if isinstance(content, list) and any(
            isinstance(p, dict) and (p.get("type") == "tool_result" or "functionResponse" in p) for p in content):
        return False
    return bool(plain(content))


def pick(script, messages):
    """The reply: rule by the last person's message, place by the model's messages behind it."""
    last = max((i for i, m in enumerate(messages) if person(m)), default=-1)
    said = plain(messages[last].get("content", messages[last].get("parts"))) if last >= 0 else ""
    done = sum(1 for m in messages[last + 1:] if turn_of_model(m))
    replies = next((r["replies"] for r in script["rules"] if re.search(r["when"], said, re.S)), script["default"])
    return replies[min(done, len(replies) - 1)]


def turn_of_model(message):
    """In the Responses dialect a model's turn is a call or a message; reasoning is not counted."""
    if message.get("type") in ("function_call", "custom_tool_call", "local_shell_call"):
        return True
    return message.get("role") in ("assistant", "model") and message.get("type") != "reasoning"


def fill(schema, values):
    """Arguments that a tool's schema asks for, taken from values, else the plainest value of the type."""
    properties, made = schema.get("properties", {}), {}
    for name, kind in properties.items():
        if name in values:
            value = values[name]
            if kind.get("type") == "array" and isinstance(value, str):
                value = ["bash", "-lc", value]
            made[name] = value
        elif name in schema.get("required", []):
            made[name] = {"boolean": False, "number": 1, "integer": 1, "array": []}.get(
                str(kind.get("type")).lower(), "as asked")
    return made or values


def own(names, tools):
    """The agent's own tool among names, whatever its case."""
    declared = {tool.lower(): tool for tool in tools}
    return next((declared[name] for name in names if name in declared), None)


def call_of(reply, tools):
    """(tool, arguments) of a reply, by the names the agent declares."""
    if "call" in reply:
        return reply["call"][0], reply["call"][1]
    if "shell" in reply:
        name = own(SHELL, tools)
        values = {k: reply["shell"] for k in ("command", "cmd", "script")}
        values |= {"description": "Look", "is_background": False, "requires_approval": False}
    elif "write" in reply:
        name = own(WRITE, tools)
        path, content = reply["write"]
        values = {k: path for k in ("file_path", "path", "filePath", "filename")}
        values |= {"content": content, "file_text": content, "command": "write"}
    else:
        return None
    return (name, fill(tools[name], values)) if name else None


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.whole({})

    def do_GET(self):
        if "models" in self.path:
            names = ["scripted", "gpt-5", "gpt-4.1", "claude-sonnet-4-5"]
            self.whole({"object": "list", "data": [{"id": n, "object": "model", "created": 1} for n in names]})
        else:
            self.whole({})

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        if self.server.log:
            with self.server.lock, open(self.server.log, "a") as log:
                log.write(json.dumps({"path": self.path, "body": body}) + "\n")
        path = self.path.split("?")[0]
        if path.endswith("count_tokens") or path.endswith(":countTokens"):
            self.whole({"input_tokens": len(raw) // 4, "totalTokens": len(raw) // 4})
        elif path.endswith("/messages"):
            self.anthropic(body)
        elif path.endswith("/responses"):
            self.openai(body)
        elif path.endswith("/chat/completions"):
            self.chat(body)
        elif path.endswith("enerateContent"):
            self.gemini(body, "stream" in path)
        else:
            self.whole({})

    # The four dialects.

    def anthropic(self, body):
        tools = {t["name"]: t.get("input_schema", {}) for t in body.get("tools") or []}
        reply = pick(self.server.script, body.get("messages", []))
        blocks = []
        if reply.get("thinking") and body.get("thinking", {}).get("type") in ("enabled", "adaptive"):
            blocks.append({"type": "thinking", "thinking": reply["thinking"], "signature": "c2NyaXB0ZWQ="})
        if reply.get("text"):
            blocks.append({"type": "text", "text": reply["text"]})
        call = call_of(reply, tools)
        if call:
            blocks.append({"type": "tool_use", "id": "toolu_" + uuid.uuid4().hex[:24], "name": call[0], "input": call[1]})
        stop = "tool_use" if call else "end_turn"
        usage = {"input_tokens": 100, "output_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {"id": "msg_" + uuid.uuid4().hex[:24], "type": "message", "role": "assistant",
                   "model": body.get("model", "scripted"), "stop_sequence": None, "usage": usage}
        if not body.get("stream"):
            return self.whole(message | {"content": blocks, "stop_reason": stop})
        events = [("message_start", {"message": message | {"content": [], "stop_reason": None}})]
        for index, block in enumerate(blocks):
            empty, deltas = dict(block), []
            if block["type"] == "text":
                empty["text"] = ""
                deltas = [{"type": "text_delta", "text": block["text"]}]
            elif block["type"] == "thinking":
                empty |= {"thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": block["thinking"]},
                          {"type": "signature_delta", "signature": block["signature"]}]
            else:
                empty["input"] = {}
                deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            events.append(("content_block_start", {"index": index, "content_block": empty}))
            events += [("content_block_delta", {"index": index, "delta": d}) for d in deltas]
            events.append(("content_block_stop", {"index": index}))
        events += [("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}),
                   ("message_stop", {})]
        self.stream((f"event: {name}\ndata: {json.dumps({'type': name} | data)}\n\n" for name, data in events))

    def openai(self, body):
        tools = {t.get("name", t.get("type")): t.get("parameters", {}) for t in body.get("tools") or []}
        asked = body.get("input", [])
        if isinstance(asked, str):
            asked = [{"role": "user", "content": asked}]
        reply, output = pick(self.server.script, asked), []
        if reply.get("thinking"):
            output.append({"type": "reasoning", "id": "rs_" + uuid.uuid4().hex[:20],
                           "summary": [{"type": "summary_text", "text": reply["thinking"]}]})
        call = call_of(reply, tools)
        if reply.get("text"):
            output.append({"type": "message", "id": "msg_" + uuid.uuid4().hex[:20], "role": "assistant",
                           "status": "completed",
                           "content": [{"type": "output_text", "text": reply["text"], "annotations": []}]})
        if call:
            output.append({"type": "function_call", "id": "fc_" + uuid.uuid4().hex[:20], "status": "completed",
                           "call_id": "call_" + uuid.uuid4().hex[:20], "name": call[0], "arguments": json.dumps(call[1])})
        usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 20,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 120}
        done = {"id": "resp_" + uuid.uuid4().hex[:20], "object": "response", "created_at": int(time.time()),
                "status": "completed", "model": body.get("model", "scripted"), "output": output, "usage": usage}
        if not body.get("stream"):
            return self.whole(done)
        events = [{"type": "response.created", "response": done | {"status": "in_progress", "output": []}}]
        for index, item in enumerate(output):
            events.append({"type": "response.output_item.added", "output_index": index, "item": item})
            if item["type"] == "message":
                events.append({"type": "response.output_text.delta", "output_index": index, "content_index": 0,
                               "item_id": item["id"], "delta": item["content"][0]["text"]})
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        events.append({"type": "response.completed", "response": done})
        self.stream(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)

    def chat(self, body):
        tools = {t["function"]["name"]: t["function"].get("parameters", {}) for t in body.get("tools") or []}
        reply = pick(self.server.script, body.get("messages", []))
        call = call_of(reply, tools)
        message = {"role": "assistant", "content": reply.get("text") or ("" if not call else None)}
        if reply.get("thinking"):
            message["reasoning_content"] = reply["thinking"]
        if call:
            message["tool_calls"] = [{"index": 0, "id": "call_" + uuid.uuid4().hex[:20], "type": "function",
                                      "function": {"name": call[0], "arguments": json.dumps(call[1])}}]
        stop = "tool_calls" if call else "stop"
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        head = {"id": "chatcmpl-" + uuid.uuid4().hex[:20], "created": int(time.time()), "model": body.get("model", "scripted")}
        if not body.get("stream"):
            return self.whole(head | {"object": "chat.completion", "usage": usage, "choices": [
                {"index": 0, "message": message, "finish_reason": stop}]})
        head["object"] = "chat.completion.chunk"
        chunks = [head | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
                  head | {"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]},
                  head | {"choices": [], "usage": usage}]
        self.stream([f"data: {json.dumps(c)}\n\n" for c in chunks] + ["data: [DONE]\n\n"])

    def gemini(self, body, streamed):
        tools = {d["name"]: d.get("parameters") or d.get("parametersJsonSchema") or {}
                 for t in body.get("tools") or [] for d in t.get("functionDeclarations") or []}
        reply, parts = pick(self.server.script, body.get("contents", [])), []
        if reply.get("thinking"):
            parts.append({"text": reply["thinking"], "thought": True})
        if reply.get("text"):
            parts.append({"text": reply["text"]})
        call = call_of(reply, tools)
        if call:
            parts.append({"functionCall": {"name": call[0], "args": call[1]}})
        if "json" in str(body.get("generationConfig", {}).get("responseMimeType", "")):
            parts = [{"text": json.dumps(reply.get("json", {"reasoning": "as scripted", "next_speaker": "user",
                                                            "complexity_reasoning": "small", "complexity_score": 1}))}]
        made = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120},
                "modelVersion": "scripted"}
        self.stream([f"data: {json.dumps(made)}\n\n"]) if streamed else self.whole(made)

    # Writing.

    def whole(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def stream(self, pieces):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece.encode())
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, form, *values):
        if self.server.loud:
            sys.stderr.write(form % values + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", required=True)
    parser.add_argument("--port", type=int, default=0, help="0: a free one, which is printed")
    parser.add_argument("--log", help="append each request's path and body here")
    parser.add_argument("--loud", action="store_true")
    asked = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", asked.port), Model)
    server.daemon_threads, server.lock = True, threading.Lock()
    server.log, server.loud = asked.log, asked.loud
    print(server.server_port, flush=True)
    with open(asked.script) as file:
        server.script = json.load(file)
    server.serve_forever()


if __name__ == "__main__":
    main()
