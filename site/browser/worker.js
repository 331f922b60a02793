// The thread that runs the command. It gets {id, argv, files: {name: text or bytes}, wants: [name]} and
// answers {id, code, stdout, stderr, files, ms}. Files are in memory, in a folder that is emptied before every call.
// `gepolab_module` is emscripten's loader, which stands before this text.

let module = null, stdout = [], stderr = [];
const decoder = new TextDecoder();

const WORK = '/files';

async function start(wasm) {
  module = await gepolab_module({
    wasmBinary: wasm,
    stdout: byte => { if (byte !== null) stdout.push(byte & 255); },
    stderr: byte => { if (byte !== null) stderr.push(byte & 255); },
  });
  module.FS.mkdir(WORK);
  module.FS.chdir(WORK);
}

function emptied(folder) {
  for (const name of module.FS.readdir(folder)) {
    if (name === '.' || name === '..') continue;
    const path = folder + '/' + name;
    if (module.FS.isDir(module.FS.stat(path).mode)) {
      emptied(path);
      module.FS.rmdir(path);
    } else module.FS.unlink(path);
  }
}

function place(name, content) {
  const folders = name.split('/').slice(0, -1);
  for (let i = 1; i <= folders.length; ++i) {
    const path = WORK + '/' + folders.slice(0, i).join('/');
    if (!module.FS.analyzePath(path).exists) module.FS.mkdir(path);
  }
  module.FS.writeFile(WORK + '/' + name, content);
}

function run({argv, files = {}, wants = []}) {
  stdout = [];
  stderr = [];
  emptied(WORK);
  for (const [name, content] of Object.entries(files)) place(name, content);
  const from = performance.now();
  const code = module.callMain(argv);
  const ms = performance.now() - from;
  const made = {};
  for (const name of wants)
    if (module.FS.analyzePath(WORK + '/' + name).exists) made[name] = module.FS.readFile(WORK + '/' + name, {encoding: 'utf8'});
  return {code, ms, files: made, stdout: decoder.decode(new Uint8Array(stdout)), stderr: decoder.decode(new Uint8Array(stderr))};
}

// A call that ends the module by a fault (out of memory, a check of the program) leaves it unusable: `broken` has the
// page start another thread.
onmessage = async ({data}) => {
  try {
    if (data.wasm) {
      await start(data.wasm);
      postMessage({id: data.id});
    } else postMessage({id: data.id, ...run(data)});
  } catch (fault) {
    postMessage({id: data.id, broken: true, code: 1, ms: 0, stdout: '', stderr: String(fault && fault.message || fault), files: {}});
  }
};
