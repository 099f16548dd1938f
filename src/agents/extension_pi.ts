// Written by `ripplemem agents install pi`, taken away by `ripplemem agents remove pi`.
// It calls the hook and adds what the hook gives to a prompt. Without an answer, a prompt goes on as it is.
import { spawn } from "node:child_process";

const PROGRAM = "RIPPLEMEM";
const MOST_MS = 2000;

function call(event: string, value: object): Promise<string> {
	return new Promise((resolve) => {
		let child: ReturnType<typeof spawn> | undefined;
		let out = "";
		const end = (text: string) => {
			clearTimeout(timer);
			resolve(text);
		};
		const timer = setTimeout(() => {
			child?.kill();
			resolve("");
		}, MOST_MS);
		try {
			child = spawn(PROGRAM, ["agents", "hook", "pi", event], { stdio: ["pipe", "pipe", "ignore"] });
			child.on("error", () => end(""));
			child.stdin?.on("error", () => {});
			child.stdout?.on("data", (data) => (out += data));
			child.on("close", () => end(out));
			child.stdin?.end(JSON.stringify(value));
		} catch {
			end("");
		}
	});
}

export default function (pi: any) {
	const of = (ctx: any) => ({ session_id: ctx.sessionManager.getSessionId(), cwd: ctx.cwd });
	pi.on("before_agent_start", async (event: any, ctx: any) => {
		try {
			const answer = await call("before_agent_start", { ...of(ctx), prompt: event.prompt });
			const text = answer && JSON.parse(answer).text;
			if (text) return { message: { customType: "ripplemem", content: text, display: false } };
		} catch {
			// A prompt goes on as it is.
		}
	});
	pi.on("session_compact", async (_event: any, ctx: any) => {
		await call("session_compact", of(ctx));
	});
}
