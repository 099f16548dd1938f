import { MockLanguageModelV4 } from "ai/test";

const model = new MockLanguageModelV4({
  doGenerate: async () => ({
    content: [{ type: "text", text: "To Lisbon." }],
    finishReason: { unified: "stop", raw: "stop" },
    usage: {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    },
    warnings: [],
  }),
});
