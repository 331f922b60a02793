// Compares the WebAssembly module with the native command.
//
//     wasm.mjs GEPOLAB MODULE_FOLDER
//
// Every case runs in both; their JSON is compared leaf by leaf. A number agrees when it has the same bits (both print
// as many digits as a double needs). Where the C library of the module rounds a function (exp, pow, lgamma, …) or a
// sum of BLAS differently, the largest relative difference is printed, and it must be below the case's limit.
// Prints a line for each case and exits 1 if one disagrees.
import {execFileSync, spawnSync} from 'node:child_process';
import {readFileSync, mkdtempSync, writeFileSync, rmSync, mkdirSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import path from 'node:path';

const [program, folder] = process.argv.slice(2).map(p => path.resolve(p));
const gepolab_module = createRequire(import.meta.url)(path.join(folder, 'gepolab.js'));

const token_log = n => Array.from({length: n}, (_, step) => JSON.stringify({step, time_s: 30 * step, groups: [{rewards: [1, 0, 0, 1],
  logp: [[-0.5 - 0.01 * step, -1.2], [-0.9, -0.3], [-2.1, -0.7 - 0.003 * step], [-0.4, -0.2]],
  logq: [[-0.6, -1.1], [-0.8 - 0.02 * step, -0.35], [-2.0, -0.9], [-0.45, -0.2]],
  version_gap: [[step % 5, step % 5], [1, 1], [2, 3], [0, 0]]}]})).join('\n') + '\n';
const group = JSON.stringify({rewards: [1, 0, 0.5, 0], logp: [[-1, -0.5], [-2, -1, -0.1], [-0.25], [-3, -0.125]],
                              logq: [[-1.25, -0.4], [-1, -1, -0.2], [-0.75], [-2, -0.5]],
                              logprox: [[-1.1, -0.45], [-1.5, -1, -0.15], [-0.5], [-2.5, -0.25]], version_gap: [[1, 1], [2, 2, 3], [0], [4, 4]],
                              logref: [[-1.2, -0.6], [-1.75, -0.9, -0.1], [-0.5], [-2.25, -0.75]], max_length: 4});
const EXACT = 0, ROUNDED = 1e-9;
const presets = JSON.parse(execFileSync(program, ['list', 'presets', '--json'])).map(preset => preset.name);
const algorithms = JSON.parse(execFileSync(program, ['list', 'algorithms', '--json'])).map(algorithm => algorithm.name);
const own = 'name: own\nseed: 3\nsteps: 150\nworld: {kind: bandit}\ntrain: {groups: 8, group_size: 8}\ncluster:\n';
const cases = [
  ...presets.map(name => ({name: `sim, preset ${name}`, argv: ['sim', 'quickstart', 'steps=300', `cluster={preset: ${name}}`], limit: EXACT})),
  ...['heterorl_trace', 'packet_loss', 'shared_egress', 'relay_tree', 'slow_prompts', 'heterogeneous_samplers', 'three_continents', 'weights_in_flight']
    .map(recipe => ({name: `sim ${recipe}`, argv: ['sim', recipe], limit: ROUNDED})),
  {name: 'sim, all distributions', argv: ['sim', 'own.yaml', '--selection'], limit: ROUNDED, files: {'own.yaml': own +
    '  preset: prime_rl\n  lengths: {distribution: lognormal, mu: 6.9, sigma: 0.8}\n  delay: {distribution: weibull, shape: 0.7, scale: 60}\n' +
    '  data_delay: {distribution: pareto, shape: 2.5, scale: 1}\n  learner: {step: {distribution: gamma, shape: 3, scale: 8}}\n'}},
  {name: 'sim --theory', argv: ['sim', 'quickstart', 'steps=500', 'cluster={preset: sync, samplers: 4}', '--theory'], limit: ROUNDED},
  {name: 'sim --schedule csv', argv: ['sim', 'quickstart', '--schedule', 'csv'], limit: EXACT, text: true},
  {name: 'lab bias four_arms', argv: ['lab', 'bias', 'four_arms'], limit: ROUNDED},
  {name: 'lab bias bias_vs_kl, 5 divergences', argv: ['lab', 'bias', 'bias_vs_kl', 'group_size=[2,4]',
    'dial={kind: direction, kl: {from: 0.01, to: 2, points: 5, scale: log}}'], limit: ROUNDED},
  ...algorithms.filter(name => name.length > 0).map(name => ({name: `policy ${name}`, argv: ['policy', '-a', name, 'group.json'],
    files: {'group.json': group}, limit: ROUNDED, may_fail: true})),
  {name: 'whatif', argv: ['whatif', 'run.jsonl'], files: {'run.jsonl': token_log(40)}, limit: ROUNDED},
  {name: 'diagnose', argv: ['diagnose', 'run.jsonl', '-a', 'grpo'], files: {'run.jsonl': token_log(60)}, limit: ROUNDED},
  {name: 'list metrics', argv: ['list', 'metrics'], limit: EXACT},
  {name: 'refusal', argv: ['sim', 'quickstart', 'cluster.windoww=3'], limit: EXACT, may_fail: true},
];

function native({argv, files = {}, text}) {
  const at = mkdtempSync(path.join(tmpdir(), 'gepolab-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(at, name), content);
  const done = spawnSync(program, text ? argv : [...argv, '--json'], {cwd: at, encoding: 'utf8', maxBuffer: 1 << 28,
                                                                        env: {...process.env, OPENBLAS_NUM_THREADS: '1'}});
  rmSync(at, {recursive: true});
  return {code: done.status, stdout: done.stdout, stderr: done.stderr};
}

let stdout = [], stderr = [];
const module = await gepolab_module({wasmBinary: readFileSync(path.join(folder, 'gepolab.wasm')),
  stdout: byte => { if (byte !== null) stdout.push(byte & 255); }, stderr: byte => { if (byte !== null) stderr.push(byte & 255); }});
module.FS.mkdir('/files');
module.FS.chdir('/files');

function in_module({argv, files = {}, text}) {
  stdout = [], stderr = [];
  for (const [name, content] of Object.entries(files)) module.FS.writeFile('/files/' + name, content);
  const from = process.cpuUsage(), code = module.callMain(text ? [...argv] : [...argv, '--json']), {user, system} = process.cpuUsage(from);
  return {code, ms: (user + system) / 1000, stdout: Buffer.from(stdout).toString(), stderr: Buffer.from(stderr).toString()};
}

// {numbers, same, worst, where} of two values; anything but numbers has to be equal.
function compare(a, b, where, sum) {
  if (typeof a === 'number' && typeof b === 'number') {
    ++sum.numbers;
    if (Object.is(a, b)) ++sum.same;
    else {
      const scale = Math.max(Math.abs(a), Math.abs(b), 1e-6), far = Math.abs(a - b) / scale;
      if (!(far <= sum.worst)) { sum.worst = far; sum.where = `${where}: ${a} and ${b}`; }
    }
  } else if (a !== null && b !== null && typeof a === 'object' && typeof b === 'object') {
    const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
    for (const key of keys) compare(a[key], b[key], `${where}.${key}`, sum);
  } else if (a !== b) sum.other.push(`${where}: ${JSON.stringify(a)} and ${JSON.stringify(b)}`);
  return sum;
}

let wrong = 0, numbers = 0, same = 0, worst_of_all = 0;
const differing = [];
console.log('case'.padEnd(38), 'numbers'.padStart(8), 'same bits'.padStart(10), 'largest difference'.padStart(19), 'CPU ms'.padStart(8));
for (const one of cases) {
  const ours = in_module(one), theirs = native(one);
  const sum = {numbers: 0, same: 0, worst: 0, where: '', other: []};
  if (ours.code !== theirs.code) sum.other.push(`exit codes ${ours.code} and ${theirs.code}: ${ours.stderr.trim()} | ${theirs.stderr.trim()}`);
  else if (theirs.code !== 0) compare(ours.stderr, theirs.stderr, 'stderr', sum);
  else if (one.text) {
    const cells = text => text.trim().split(/[\n,]/).map(cell => cell === '' || isNaN(cell) ? cell : Number(cell));
    compare(cells(ours.stdout), cells(theirs.stdout), 'cell', sum);
  } else compare(JSON.parse(ours.stdout), JSON.parse(theirs.stdout), '', sum);
  if (theirs.code !== 0 && !one.may_fail) sum.other.push(`the command fails: ${theirs.stderr.trim()}`);
  const good = sum.other.length === 0 && sum.worst <= one.limit;
  numbers += sum.numbers, same += sum.same, worst_of_all = Math.max(worst_of_all, sum.worst);
  if (sum.numbers !== sum.same) differing.push(`${one.name}: ${sum.numbers - sum.same} numbers, most at ${sum.where}`);
  wrong += !good;
  console.log(one.name.padEnd(38), String(sum.numbers).padStart(8), String(sum.same).padStart(10),
              (sum.worst === 0 ? 'none' : sum.worst.toExponential(1)).padStart(19), ours.ms.toFixed(1).padStart(8), good ? '' : ' DISAGREES');
  if (!good) for (const what of [...sum.other.slice(0, 3), sum.where].filter(Boolean)) console.log('    ' + what);
}
if (differing.length) console.log('other bits (functions of the C library and sums of BLAS round differently):\n  ' + differing.join('\n  '));
console.log(`wasm: ${cases.length} cases, ${numbers} numbers, ${same} with the same bits, largest relative difference ${worst_of_all.toExponential(1)}: `
  + `${wrong} disagree`);
process.exit(wrong ? 1 : 0);
