// Runs the trace processor of the Perfetto UI, WebAssembly for browsers, in Node. It reads requests
// from standard input and writes answers to standard output, in Perfetto's RPC format.
//
//     node trace_processor.cjs FOLDER    (FOLDER has engine_bundle.js and trace_processor*.wasm)
const fs = require("fs");
const path = require("path");

const folder = path.resolve(process.argv[2]);
const bundle = path.join(folder, "engine_bundle.js");
const code = fs.readFileSync(bundle, "utf8");

// The parts of a browser's worker that the bundle uses.
class XMLHttpRequest {
    open(method, url) {
        this.file = path.join(folder, path.basename(url));
    }
    send() {
        const bytes = fs.readFileSync(this.file);
        this.status = 200;
        this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    }
}
const worker = { location: { href: "http://localhost/engine_bundle.js" } };
const port = { postMessage: (bytes) => fs.writeSync(1, bytes) };
const quiet = { ...console, log: console.error, warn: console.error };

new Function("self", "process", "require", "module", "importScripts", "XMLHttpRequest", "location", "console", "WorkerGlobalScope", code)(
    worker, undefined, undefined, undefined, () => {}, XMLHttpRequest, worker.location, quiet, class {});
worker.onmessage({ data: port });
setTimeout(() => { // after the start of the module, which is a microtask
    process.stdin.on("data", (bytes) => port.onmessage({ data: new Uint8Array(bytes) }));
}, 0);
