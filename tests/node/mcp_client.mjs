// Drives a server of tools with the official TypeScript client of the Model Context Protocol.
//
//     mcp_client.mjs SERVER
//
// SERVER is JSON: {"command": …, "args": […]} for a server on stdin and stdout, {"url": …} for one over HTTP. It holds
// a memory of its own with the default bank `me`. Ends with exit code 0 when all is as it should be.

import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const server = JSON.parse(process.argv[2]);
const transport = server.url ? new StreamableHTTPClientTransport(new URL(server.url)) : new StdioClientTransport(server);
const client = new Client({ name: 'test', version: '1' });
await client.connect(transport);
const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name), ['remember', 'recall', 'evidence', 'explain', 'profile', 'list', 'show', 'forget', 'forget_turns', 'status']);
const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError, JSON.stringify(result));
  return result.structuredContent;
};
const stored = await call('remember', { turns: [{ speaker: 'Ann', text: 'I keep bees in Porto.', turn: '1' }] });
assert.ok(stored.included, JSON.stringify(stored));
assert.match((await call('recall', { question: 'Where does Ann keep bees?' })).context, /Porto/);
assert.ok((await call('evidence', { question: 'Where does Ann keep bees?' })).trace.first_hop.length > 0);
const empty = await client.callTool({ name: 'recall', arguments: { question: 'Bees?', bank: 'nobody' } });
assert.ok(!empty.isError && empty.content[0].text.includes('holds nothing'), JSON.stringify(empty));
assert.deepEqual((await client.listResources()).resources.map((one) => one.name), ['me']);
assert.ok((await call('forget', { turn: '1' })).included);
await assert.rejects(client.callTool({ name: 'nothing', arguments: {} }), /unknown tool/);
await client.close();
