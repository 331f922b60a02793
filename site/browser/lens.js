// Loss lens: a group of responses -> weight and coefficient of every token, by `gepolab policy` for each chosen method.
'use strict';

const LENS_EXAMPLE = `{"rewards": [1, 0, 0, 1],
 "logp": [[-0.40, -0.90, -0.20], [-1.60, -0.75], [-4.50, -2.80, -0.60], [-0.20, -0.35]],
 "logq": [[-0.45, -1.00, -0.25], [-1.50, -0.80], [-4.10, -2.70, -0.50], [-0.30, -0.30]],
 "version_gap": [[3, 3, 3], [1, 1], [6, 6, 6], [0, 0]], "max_length": 16}`;
const MOST_TOKENS_SHOWN = 4000;

// An algorithm's fields after the changes "eps_low=0.2 scale=none" that the command is given, too.
function changed_fields(fields, words) {
  const changed = {...fields};
  for (const word of words) {
    const at = word.indexOf('='), name = word.slice(0, at), text = word.slice(at + 1);
    changed[name] = text === 'true' || text === 'false' ? text === 'true' : text !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
  }
  return changed;
}

// What the fields of an algorithm say about its clip, in words.
function clip_words(fields) {
  if (fields.clip === 'none') return fields['gate.negative_below'] > 0 ? `no clip; wrong responses below ${number(fields['gate.negative_below'])} are masked` : 'no clip';
  if (fields.clip === 'ppo') return `clip ${number(1 - fields.eps_low, 5)} to ${number(1 + fields.eps_high, 5)} of the ${fields.ratio} ratio`;
  return `clip: ${fields.clip}, of the ${fields.ratio} ratio`;
}

function groups_of(text) {
  let data;
  try { data = JSON.parse(text); } catch (problem) { throw new Error('the group is no JSON: ' + problem.message); }
  return data.groups ? data.groups : [data];
}

// One line for each response: tokens as cells, blue where the gradient raises their probability, orange where it lowers it.
function lens_rows(answer, groups) {
  const responses = groups.flatMap(group => group.rewards.map((reward, i) => ({reward, logp: group.logp[i], logq: group.logq[i]})));
  const most = Math.max(...answer.coefficients.flat().map(Math.abs), 1e-300);
  let left = MOST_TOKENS_SHOWN;
  return responses.map((response, i) => {
    const advantage = answer.advantages[i], weights = answer.weights[i], coefficients = answer.coefficients[i];
    const cells = coefficients.slice(0, Math.max(0, left)).map((coefficient, t) => {
      const still = coefficient === 0, share = Math.abs(coefficient) / most;
      const cell = el('span', {class: 'token ' + (still ? 'still' : coefficient > 0 ? 'up' : 'down'), style: `--share: ${share.toFixed(3)}`},
        el('b', {}, number(coefficient)), el('small', {}, '×' + number(weights[t])));
      cell.title = `token ${t + 1}: log p ${number(response.logp[t])}, log q ${number(response.logq[t])}, ratio ${number(Math.exp(response.logp[t] - response.logq[t]))}`
        + `, weight ${number(weights[t])}, coefficient ${number(coefficient)}${still && advantage !== 0 ? ': clipped or masked' : ''}`;
      return cell;
    });
    left -= coefficients.length;
    return [String(i + 1), number(response.reward), number(advantage), el('td', {class: 'tokens'}, cells, left < 0 ? ' …' : '')];
  });
}

function start_lens(algorithms) {
  const place = document.getElementById('lens'), chooser = place.querySelector('[name=methods]');
  const first = ['grpo', 'gspo', 'gepo_released'];
  chooser.replaceChildren(...algorithms.map(algorithm => el('option', {value: algorithm.name, selected: first.includes(algorithm.name)}, algorithm.name)));
  const area = place.querySelector('[name=group]');
  area.defaultValue = LENS_EXAMPLE;
  const command = state => state.methods.map(name => `gepolab policy -a ${name}${state.fields.split(/\s+/).filter(Boolean).map(word => ' ' + quoted(word)).join('')} group.json`).join('\n');
  const tool = new Tool('lens', async state => {
    const groups = groups_of(state.group), shown = [], fields = state.fields.split(/\s+/).filter(Boolean);
    if (state.methods.length === 0) throw new Error('choose a method');
    show(place.querySelector('.recipe'), command(state));
    for (const name of state.methods) {
      const algorithm = algorithms.find(candidate => candidate.name === name);
      const about = el('p', {class: 'small'}, `${clip_words(changed_fields(algorithm.fields, fields))}. ${algorithm.source}`);
      const answer = await engine.run(['policy', '-a', name, ...fields, 'group.json', '--json'], {'group.json': state.group});
      if (answer.code !== 0) { shown.push(el('h3', {}, name), el('p', {class: 'message error'}, answer.stderr.trim())); continue; }
      const said = JSON.parse(answer.stdout);
      shown.push(el('h3', {}, said.algorithm), about, el('p', {class: 'small'}, `loss ${number(said.loss, 5)}; clip acts on ${percent(said.clip_fraction)} of the tokens; effective sample size ${number(said.ess)}; `
        + `largest weight ${number(said.iw_max)}`), table_of(['', 'reward', 'advantage', 'coefficient of every token, × its weight before the clip'], lens_rows(said, groups), {class: 'lens'}));
    }
    show(place.querySelector('.answer'), shown);
  });
  place.querySelector('.copy-recipe').addEventListener('click', event => copy(event.target,
    `# group.json:\n# ${tool.state().group.replaceAll('\n', '\n# ')}\n${command(tool.state())}`));
  const drop = async file => { area.value = await file.text(); tool.keep(); tool.update(); };
  area.addEventListener('dragover', event => event.preventDefault());
  area.addEventListener('drop', event => { if (event.dataTransfer.files[0]) { event.preventDefault(); drop(event.dataTransfer.files[0]); } });
}
