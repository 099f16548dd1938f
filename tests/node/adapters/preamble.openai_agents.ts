import { setTracingDisabled } from "@openai/agents";
import { assistantMessage, ScriptedModel } from "@openai/agents-core/testing";

setTracingDisabled(true);
const model = new ScriptedModel([[assistantMessage("Noted.")], [assistantMessage("To Lisbon.")]]);
