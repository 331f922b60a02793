// Bias dial: methods, group size and divergence -> bias, variance, MSE and cosine, by `gepolab lab bias`.
'use strict';

const WORLDS = {
  four: {rewards: [1, 0, 0.5, 0.2], probs: [0.55, 0.25, 0.15, 0.05]},
  six: {rewards: [1, 0, 0, 1, 0, 0.5], probs: [0.3, 0.25, 0.2, 0.12, 0.08, 0.05]},
};
const MEASURES = [['bias', 'bias: length of expectation minus gradient', true], ['cosine', 'cosine of expectation and gradient', false],
                  ['variance', 'variance (trace of the covariance)', true], ['mse', 'mean squared error', true]];

function dial_recipe(state) {
  const world = WORLDS[state.world];
  return `name: dial\nseed: ${state.seed}\nworld: {kind: bandit, rewards: [${world.rewards.join(', ')}]}\nlearner_probs: [${world.probs.join(', ')}]\n`
    + `dial: {kind: direction, kl: {from: 0.001, to: 3, points: ${state.points}, scale: log}}\ngroup_size: [${state.group_size}]\n`
    + `algorithms: [${state.methods.join(', ')}]\n`;
}

// Methods whose numbers are the same at one divergence, in words: their curves lie on each other there.
function same_at(rows) {
  const of = new Map();
  for (const row of rows) {
    const key = JSON.stringify([row.bias, row.variance, row.cosine, row.mse].map(value => number(value, 6)));
    of.set(key, [...of.get(key) || [], row.algorithm]);
  }
  return [...of.values()].filter(names => names.length > 1).map(names => names.join(' and ')).join('; ');
}

// Lines of one measure over the divergence, one for each method. The mark is where the slider stands.
function draw_measure(rows, methods, [key, label, log], at) {
  const values = rows.map(row => row[key]).filter(value => value !== null && (!log || value > 1e-12));
  if (values.length === 0) return el('p', {}, label + ': zero for all');
  const x = rows.map(row => row.kl_exact), low = log ? Math.max(Math.min(...values), Math.max(...values) * 1e-6) : Math.min(...values, 0);
  const high = log ? Math.max(...values) * 1.2 : Math.max(...values, 1);
  const plot = axes({width: 420, height: 230, title: label, x: {low: Math.min(...x), high: Math.max(...x), log: true, label: 'KL of learner and sampler, nats'},
                     y: {low: log && high / low < 3 ? low / 2 : low, high, log, label: ''}});
  methods.forEach((method, k) => {
    const points = rows.filter(row => row.algorithm === method && row[key] !== null && (!log || row[key] >= low))
      .map(row => `${plot.x(row.kl_exact).toFixed(1)},${plot.y(row[key]).toFixed(1)}`).join(' ');
    plot.element.append(titled(svg('polyline', {points, class: 'line s' + (k % COLOURS.length + 1)}), method));
  });
  plot.element.append(svg('line', {x1: plot.x(at), x2: plot.x(at), y1: plot.top, y2: plot.bottom, class: 'mark'}));
  return el('figure', {}, el('figcaption', {}, label), plot.element);
}

function start_dial(algorithms) {
  const place = document.getElementById('dial'), chooser = place.querySelector('[name=methods]');
  const first = ['is', 'snis', 'grpo', 'gspo', 'gepo', 'gepo_released'];
  chooser.replaceChildren(...algorithms.map(algorithm => el('option', {value: algorithm.name, selected: first.includes(algorithm.name)}, algorithm.name)));
  let asked = '', rows = [];
  const tool = new Tool('dial', async state => {
    if (state.methods.length === 0) throw new Error('choose a method');
    const recipe = dial_recipe(state);
    show(place.querySelector('.recipe'), recipe);
    if (recipe !== asked) {
      rows = await engine.json(['lab', 'bias', 'dial.yaml'], {'dial.yaml': recipe});
      asked = recipe;
    }
    const kls = [...new Set(rows.map(row => row.kl_exact))].sort((a, b) => a - b), wanted = 10 ** Number(state.kl);
    const at = kls.reduce((best, kl) => Math.abs(Math.log(kl / wanted)) < Math.abs(Math.log(best / wanted)) ? kl : best, kls[0]);
    const methods = [...new Set(rows.map(row => row.algorithm))];
    show(place.querySelector('.plots'), MEASURES.map(measure => draw_measure(rows, methods, measure, at)));
    show(place.querySelector('.answer'), el('h3', {}, `At a KL of ${number(at)} nats, groups of ${state.group_size}`),
      Math.abs(Math.log(at / wanted)) > 0.01 ? el('p', {class: 'small'}, `The nearest of the ${kls.length} divergences computed to the ${number(wanted)} asked for; raise "divergences" for a nearer one.`) : '',
      table_of(['method', 'bias', 'bias ÷ |gradient|', 'cosine', 'variance', 'MSE', 'weights: ESS', 'how'], rows.filter(row => row.kl_exact === at).map(row => {
        const size = Math.hypot(...row.true_gradient), k = methods.indexOf(row.algorithm);
        return [el('span', {}, el('span', {class: 'key s' + (k % COLOURS.length + 1)}), row.algorithm), number(row.bias), number(row.bias / size), number(row.cosine),
                number(row.variance), number(row.mse), number(row.ess), row.method];
      })), same_at(rows.filter(row => row.kl_exact === at)) ? el('p', {class: 'small'}, `The same numbers here, so that one curve hides the other: ${same_at(rows.filter(row => row.kl_exact === at))}.`) : '');
  });
  place.querySelector('.copy-recipe').addEventListener('click', event => copy(event.target, `# gepolab lab bias dial.yaml\n${dial_recipe(tool.state())}`));
}
