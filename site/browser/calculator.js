// Staleness calculator: the fields of a cluster -> `gepolab sim`.
'use strict';

const MOST_SAMPLERS_DRAWN = 16, MOST_STREAMS_DRAWN = 6; // of streams, a sampler needs room for what it generates at once

// "1, 1, 0.5" as speeds of equal samplers, or none.
function speeds_of(text, count) {
  const words = text.split(/[\s,;]+/).filter(Boolean);
  if (words.length === 0) return null;
  const speeds = words.map(Number);
  if (speeds.some(speed => !(speed > 0))) throw new Error(`speeds: '${text}' has something that is no number above 0`);
  if (speeds.length > count) throw new Error(`${speeds.length} speeds for ${count} samplers`);
  while (speeds.length < count) speeds.push(speeds[speeds.length - 1]);
  return speeds;
}

// The recipe of a state, as YAML. Fields that are left empty keep the preset's value.
function calculator_recipe(s, streams) {
  const cluster = [`preset: ${s.preset}`], learner = [`step: ${s.step} s`], rest = [];
  const near = Number(s.round_trip) > 0 ? ', site: far' : '', speeds = speeds_of(s.speeds, Number(s.samplers));
  const groups = speeds || near ? (speeds || [1]).map(speed => `{count: ${speeds ? 1 : s.samplers}, speed: ${speed}${near}}`) : null;
  cluster.push(groups ? `samplers: [${groups.join(', ')}]` : `samplers: ${s.samplers}`);
  if (streams) {
    cluster.push(`lengths: {distribution: lognormal, mu: ${Math.log(Number(s.median)).toFixed(6)}, sigma: ${s.sigma}}`, `tokens_per_s: ${s.tokens_per_s}`);
    if (s.concurrency !== '') cluster.push(`concurrency: ${s.concurrency}`);
  } else {
    cluster.push(`generation: ${s.generation} s`);
    const spread = Number(s.spread) / 100;
    if (spread > 0) cluster.push(`jitter: {distribution: uniform, min: ${number(1 - spread)}, max: ${number(1 + spread)}}`);
  }
  if (Number(s.weights) > 0) cluster.push(`weights_bytes: ${s.weights} GB`);
  if (Number(s.weights) > 0 && Number(s.bandwidth) > 0) cluster.push(`down: {bandwidth: ${s.bandwidth} Gbit/s}`);
  if (near) {
    const one_way = Number(s.round_trip) / 2;
    cluster.push(`network: {sites: [{name: here, latency: ${one_way} ms}, {name: far, latency: ${one_way} ms}]}`);
  }
  if (Number(s.delay) > 0) cluster.push(`delay: ${s.delay} s`);
  for (const name of ['window', 'ahead']) if (s[name] !== '') cluster.push(`${name}: ${s[name]}`);
  if (s.batches !== '') learner.push(`batches: ${s.batches}`);
  if (Number(s.pause) > 0) learner.push(`eval_every: 64, eval_pause: ${s.pause} s`);
  cluster.push(`learner: {${learner.join(', ')}}`);
  return ['name: calculator', `seed: ${s.seed}`, `steps: ${s.steps}`, 'world: {kind: bandit}', 'train: {groups: 8, group_size: 8}',
          'cluster:', ...cluster.map(line => '  ' + line), ...rest, ''].join('\n');
}

function draw_histogram(staleness, unit) {
  const units = unit + (unit === 'batch' ? 'es' : 's'), counts = staleness.histogram, total = counts.reduce((sum, count) => sum + count, 0) || 1;
  const most = Math.max(...counts) / total, last = counts.length - 1;
  const plot = axes({x: {low: -0.5, high: Math.max(last, 4) + 0.5, label: `staleness of a trained ${unit}, updates`,
                         ticks: ticks(0, Math.max(last, 4), 10).filter(Number.isInteger)},
                     y: {low: 0, high: most * 1.05, label: `fraction of ${units}`, text: percent}, title: 'histogram of staleness'});
  const width = plot.x(1) - plot.x(0);
  counts.forEach((count, k) => plot.element.append(titled(svg('rect', {x: plot.x(k) - width * 0.42, width: width * 0.84,
    y: plot.y(count / total), height: plot.bottom - plot.y(count / total), class: 'c1'}), `staleness ${k}: ${count} ${units}, ${percent(count / total)}`)));
  return plot.element;
}

// Rows of `--schedule csv` as objects.
function rows_of_csv(text) {
  const [head, ...lines] = text.trim().split('\n').map(line => line.split(','));
  return lines.map(line => Object.fromEntries(head.map((name, i) => [name, Number(line[i])])));
}

// Generation of every sampler (coloured by the staleness of what it made), the way to the learner, and updates.
// Places of bars that overlap in one lane: each the first that is free; sets row.place and gives their number.
function stack(rows) {
  const ends = [];
  for (const row of [...rows].sort((a, b) => a.start_s - b.start_s)) {
    const free = ends.findIndex(end => end <= row.start_s);
    row.place = free < 0 ? ends.length : free;
    ends[row.place] = row.generated_s;
  }
  return Math.max(1, ends.length);
}

function draw_timeline(rows, n_samplers, is_streaming) {
  const middle = rows[Math.floor(rows.length / 2)], updates = 12;
  if (!middle) return el('p', {}, 'no batch was trained');
  const from_step = middle.step, seen = rows.filter(row => row.step >= from_step && row.step < from_step + updates);
  const low = Math.min(...seen.map(row => row.trained_s)) - 2 * (seen[0].end_s - seen[0].trained_s), high = Math.max(...seen.map(row => row.end_s));
  const drawn = Math.min(n_samplers, is_streaming ? MOST_STREAMS_DRAWN : MOST_SAMPLERS_DRAWN), row_h = is_streaming ? 54 : 18, height = 60 + row_h * (drawn + 1);
  const most = Math.max(1, ...rows.map(row => row.staleness));
  const plot = axes({height, left: 84, x: {low, high, label: 'simulated time, s'},
                     y: {low: 0, high: 1, ticks: [], label: ''}, title: 'timeline of samplers and learner'});
  const places = Array.from({length: drawn}, (_, k) => stack(rows.filter(row => row.sampler === k && row.generated_s >= low && row.start_s <= high)));
  const y = lane => plot.top + lane * row_h + 2, clip = value => Math.min(Math.max(value, low), high);
  const bar = (row, lane, from, to, kind, text, shade, place = 0, of = 1) => {
    if (to <= low || from >= high) return;
    plot.element.append(titled(svg('rect', {x: plot.x(clip(from)), width: Math.max(1, plot.x(clip(to)) - plot.x(clip(from)) - 0.5), y: y(lane) + (row_h - 4) * place / of,
                                            height: Math.max(0.8, (row_h - 4) / of - (of > 1 ? 0.4 : 0)), class: kind, 'fill-opacity': shade}), text));
  };
  for (let lane = 0; lane <= drawn; ++lane)
    plot.element.append(svg('text', {x: plot.left - 6, y: y(lane) + row_h / 2 + 2, 'text-anchor': 'end'}, lane === drawn ? 'learner' : `sampler ${lane + 1}`));
  const steps = new Map();
  for (const row of rows) {
    if (row.end_s > low && row.trained_s < high) steps.set(row.step, row);
    if (row.sampler >= drawn || row.generated_s < low || row.start_s > high) continue;
    bar(row, row.sampler, row.start_s, row.generated_s, 'c1',
        `${is_streaming ? 'unit' : 'batch'} of version ${row.version}, ${number(row.start_s)} to ${number(row.generated_s)} s; trained in update ${row.step} with staleness ${row.staleness}`,
        1 - 0.75 * row.staleness / most, row.place, places[row.sampler]);
  }
  for (const row of steps.values()) bar(row, drawn, row.trained_s, row.end_s, 'c2', `update ${row.step}, ${number(row.trained_s)} to ${number(row.end_s)} s`, 1);
  return plot.element;
}

const FROM = {weights: 'late weights: before its generation began', generation: 'while it was generated', transit: 'on its way to the learner',
              queue: 'waiting at the learner', pause: 'in the backlog of an evaluation pause'};

function calculator_answer(sim) {
  const idle = [['the learner waits for batches', 1 - sim.learner_utilisation], ['samplers wait (weights, window, queue)', 1 - sim.sampler_utilisation]];
  const numbers = [['mean staleness', number(sim.staleness.mean)], ['median, 95 %, largest', [sim.staleness.p50, sim.staleness.p95, sim.staleness.max].join(', ')],
    ['dropped as too stale', `${percent(sim.batches_dropped / Math.max(1, sim.batches_generated))} (${number(sim.batches_dropped)} of ${number(sim.batches_generated)})`],
    ...idle.map(([who, share]) => [who, percent(share) + ' of the time']),
    ['samples per second', number(sim.samples_per_s)], [`time of ${number(sim.updates)} updates`, duration(sim.simulated_s)]];
  if (sim.network && sim.network.weights_mean) numbers.push(['weights on their way', duration(sim.network.weights_mean) + ' on average']);
  const from = Object.entries(sim.staleness.from).map(([name, part]) => [FROM[name] || name, number(part.mean), percent(sim.staleness.mean > 0 ? part.mean / sim.staleness.mean : 0)]);
  return [table_of(['', ''], numbers, {class: 'numbers'}), el('h3', {}, 'Where the staleness comes from'), table_of(['', 'updates', 'fraction'], from)];
}

function start_calculator(presets) {
  const place = document.getElementById('calculator'), chooser = place.querySelector('[name=preset]');
  const streams = name => !/unit: batch/.test(presets.find(preset => preset.name === name).fields);
  chooser.replaceChildren(...presets.map(preset => el('option', {value: preset.name, selected: preset.name === 'areal'}, `${preset.name}: ${preset.about}`)));
  let recipe = '', soon;
  // The timeline needs a second run, which waits until the sliders rest.
  const draw_times = newest(async (argv, files, n_samplers, is_streaming) => {
    const schedule = await engine.run([...argv, '--schedule', 'csv'], files);
    show(place.querySelector('.timeline'), draw_timeline(rows_of_csv(schedule.stdout), n_samplers, is_streaming));
  });
  const tool = new Tool('calculator', async state => {
    const is_streaming = streams(state.preset), preset = presets.find(p => p.name === state.preset);
    for (const part of place.querySelectorAll('[data-unit]')) part.hidden = (part.dataset.unit === 'stream') !== is_streaming;
    show(place.querySelector('.preset-about'), `${preset.about}. ${preset.fields}. Source: ${preset.source}. Not modelled: ${preset.not_modelled}.`);
    const unit = (/unit: (\w+)/.exec(preset.fields) || [null, 'batch'])[1];
    for (const part of place.querySelectorAll('.timeline-unit')) part.textContent = unit;
    place.querySelector('.timeline-streams').hidden = !is_streaming;
    recipe = calculator_recipe(state, is_streaming);
    show(place.querySelector('.recipe'), recipe);
    const more = state.more.split('\n').map(line => line.trim()).filter(Boolean), argv = ['sim', 'calculator.yaml', ...more];
    const sim = await engine.json(argv, {'calculator.yaml': recipe});
    show(place.querySelector('.histogram'), draw_histogram(sim.staleness, unit));
    show(place.querySelector('.answer'), calculator_answer(sim));
    clearTimeout(soon);
    soon = setTimeout(draw_times, 200, argv, {'calculator.yaml': recipe}, Number(state.samplers), is_streaming);
  });
  place.querySelector('.copy-recipe').addEventListener('click', event => {
    const more = tool.state().more.split('\n').map(line => line.trim()).filter(Boolean).map(word => ' ' + quoted(word)).join('');
    copy(event.target, `# gepolab sim calculator.yaml${more}\n${recipe}`);
  });
}
