// Collapse map: which fraction of a study's runs collapsed, by method, staleness and learning rate. The numbers are the stored
// results of paper/results (GEPOLAB_STUDIES, of bundle.py).
'use strict';

// Wilson's 95 % interval of a fraction.
function wilson(count, n) {
  const z = 1.959963984540054, p = count / n, middle = (p + z * z / (2 * n)) / (1 + z * z / n);
  const half = z * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n);
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

// The scores of a cell's runs, a line a start.
function curves_of(cell) {
  const runs = Object.entries(cell.curves), updates = Math.max(...runs.flatMap(([, points]) => points.map(point => point[0])));
  const plot = axes({x: {low: 0, high: updates, label: 'update'}, y: {low: 0, high: 1, label: 'score'}, title: `scores of ${runs.length} runs`});
  for (const [start, points] of runs)
    plot.element.append(titled(svg('polyline', {class: 'run', points: points.map(([x, y]) => `${plot.x(x)},${plot.y(y)}`).join(' ')}),
      `start ${start}: last score ${number(points[points.length - 1][1])}`));
  return [el('p', {}, `Scores of the ${runs.length} runs, one evaluation in five; hover a line for its start:`), plot.element];
}

function cell_about(study, cell, dose) {
  const {method, staleness} = cell;
  const [low, high] = wilson(dose.falls, dose.runs);
  return [el('h3', {}, `${method} at a staleness of ${staleness}, rate ${number(dose.dose)}`),
    table_of(['', ''], [['collapsed', `${dose.falls} of ${dose.runs} runs: ${percent(dose.falls / dose.runs)}, 95 % interval ${percent(low)} to ${percent(high)} (Wilson)`],
      ['last score', dose.last ? `${number(dose.last[0])}, 95 % interval ${number(dose.last[1])} to ${number(dose.last[2])} over the runs` : 'no run has one'],
      ['study', `${study.name}, ${study.date}, commit ${study.commit.slice(0, 12)}`]], {class: 'numbers'}),
    ...cell.curves ? curves_of(cell) : [], el('p', {}, 'The runs again:'), el('pre', {class: 'recipe', tabindex: 0}, `${study.command}\ngepolab analyze --table outcomes ${study.name}.db`)];
}

function start_map() {
  const place = document.getElementById('map'), chooser = place.querySelector('[name=study]');
  chooser.replaceChildren(...GEPOLAB_STUDIES.map(study => el('option', {value: study.name}, `${study.name}: ${study.about}`)));
  const tool = new Tool('map', async state => {
    const study = GEPOLAB_STUDIES.find(candidate => candidate.name === state.study);
    const doses = [...new Set(study.cells.flatMap(cell => cell.doses.map(dose => dose.dose)))].sort((a, b) => a - b);
    const stalenesses = [...new Set(study.cells.map(cell => cell.staleness))].sort((a, b) => a - b);
    const rows = [...new Set(study.cells.map(cell => cell.method))].map(method => [method, ...stalenesses.flatMap(staleness => {
      const cell = study.cells.find(candidate => candidate.method === method && candidate.staleness === staleness);
      return doses.map((value, k) => {
        const dose = cell && cell.doses.find(candidate => candidate.dose === value);
        if (!dose) return el('td', {class: k ? '' : 'first'}, '');
        const share = dose.falls / dose.runs, [low, high] = wilson(dose.falls, dose.runs), text = `${method}, staleness ${staleness}, rate ${value}: ${dose.falls} of ${dose.runs} collapsed, ${percent(low)} to ${percent(high)}`;
        const pressed = state.chosen === `${method}|${staleness}|${value}`;
        return el('td', {class: k ? '' : 'first'}, el('button', {type: 'button', class: 'share', style: `--share: ${share}`, title: text, 'aria-label': text, 'aria-pressed': String(pressed),
          onclick: () => { place.querySelector('[name=chosen]').value = `${method}|${staleness}|${value}`; tool.keep(); tool.update(); }}, String(dose.falls)));
      });
    })]);
    const head = ['method', ...stalenesses.flatMap(staleness => doses.map((value, k) => k === 0 ? el('span', {}, `${staleness} `, el('small', {}, 'updates')) : ''))];
    const rates = ['rate', ...stalenesses.flatMap(() => doses.map(value => el('small', {class: 'rate'}, number(value))))];
    const drawn = table_of(head, [rates, ...rows], {class: 'map'});
    show(place.querySelector('.answer'), drawn);
    const [method, staleness, value] = state.chosen.split('|');
    const cell = study.cells.find(candidate => candidate.method === method && candidate.staleness === Number(staleness));
    const dose = cell && cell.doses.find(candidate => candidate.dose === Number(value));
    show(place.querySelector('.about'), dose ? cell_about(study, cell, dose) : el('p', {}, 'Click a number for its runs.'));
    return `${rows.length} methods at ${stalenesses.length} stalenesses, ${study.cells.flatMap(c => c.doses).reduce((sum, d) => sum + d.runs, 0).toLocaleString('en')} runs`;
  });
}
