// Reads lines with Node's readline, as JavaScript hosts do. Since Node 24 it also splits at U+2028 and U+2029; for older
// versions this program does.
//
//     node lines.mjs read FILE ...             prints the number of lines; each must be a JSON value
//     node lines.mjs mcp PROGRAM [ARGUMENT ...] starts a server, asks for the windows and prints their titles as JSON
import { spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

const count = async (input, visit) => {
  let n = 0;
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    for (const part of line.split(/[\u2028\u2029]/)) {
      visit(part);
      n++;
    }
  }
  return n;
};

const [what, ...words] = process.argv.slice(2);
if (what === "read") {
  let n = 0;
  for (const file of words) n += await count(createReadStream(file), JSON.parse);
  console.log(n);
} else {
  const server = spawn(words[0], words.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  const say = (id, method, params) => server.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
  say(1, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "node", version: "1" } });
  say("cut \ud83d", "tools/call", { name: "windows", arguments: null });
  await count(server.stdout, (line) => {
    const message = JSON.parse(line);
    if (message.id === 1) return;
    console.log(JSON.stringify(message.result.structuredContent.windows.map((w) => w.title)));
    server.stdin.end();
  });
}
