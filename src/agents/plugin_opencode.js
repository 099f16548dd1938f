// Written by `ripplemem agents install opencode`, taken away by `ripplemem agents remove opencode`.
// It calls the hook and adds what the hook gives to a message. Without an answer, a message goes on as it is.
import { spawn } from "node:child_process"

const PROGRAM = "RIPPLEMEM"
const MOST_MS = 2000

function call(event, value) {
  return new Promise((resolve) => {
    let child
    let out = ""
    const end = (text) => {
      clearTimeout(timer)
      resolve(text)
    }
    const timer = setTimeout(() => {
      child?.kill()
      resolve("")
    }, MOST_MS)
    try {
      child = spawn(PROGRAM, ["agents", "hook", "opencode", event], { stdio: ["pipe", "pipe", "ignore"] })
      child.on("error", () => end(""))
      child.stdin.on("error", () => {})
      child.stdout.on("data", (data) => (out += data))
      child.on("close", () => end(out))
      child.stdin.end(JSON.stringify(value))
    } catch {
      end("")
    }
  })
}

export const RippleMem = async ({ directory }) => ({
  "chat.message": async (input, output) => {
    try {
      const texts = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      const last = texts.at(-1)
      if (!last) return
      const prompt = texts.map((part) => part.text).join("\n")
      const answer = await call("chat.message", { sessionID: input.sessionID, directory, prompt })
      const text = answer && JSON.parse(answer).text
      if (!text) return
      // A part is known by its id, and shown in the order of ids. A synthetic one is no talk.
      output.parts.push({ ...last, id: `${last.id}m`, text, synthetic: true })
    } catch {
      // A message goes on as it is.
    }
  },
  event: async ({ event }) => {
    if (event?.type !== "session.compacted") return
    await call("session.compacted", { sessionID: event.properties?.sessionID, directory })
  },
})
