// What a report does beyond being read: tables sort by a click on a heading, and figures enlarge to charts
// that show values under the pointer and whose legend fades lines. Without Chart.js figures enlarge as pictures.
(() => {
  'use strict';
  const make = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  // --- tables ---

  const sortKey = row => column => {
    const text = row.cells[column].textContent.trim();
    const number = parseFloat(text.replace('−', '-'));
    return Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === 'number' ? -1 : 1;

  // Rows are sorted between the headings of groups.
  function sortTable(table, column, down) {
    const body = table.tBodies[0], parts = [[]];
    for (const row of [...body.rows]) {
      if (row.querySelector('.group')) parts.push([row], []);
      else parts[parts.length - 1].push(row);
    }
    for (const part of parts) {
      part.sort((a, b) => compare(sortKey(a)(column), sortKey(b)(column)) * (down ? -1 : 1));
      body.append(...part);
    }
  }

  function makeSortable(table) {
    const body = table.tBodies[0], heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
    const plain = row => row.querySelector('.group') || row.cells.length === heads.length;
    if (!body || body.rows.length < 2 || ![...body.rows].every(plain)) return;
    heads.forEach((head, column) => {
      head.tabIndex = 0;
      head.classList.add('sorts');
      const act = () => {
        const down = head.getAttribute('aria-sort') === 'ascending';
        heads.forEach(h => h.removeAttribute('aria-sort'));
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        sortTable(table, column, down);
      };
      head.addEventListener('click', act);
      head.addEventListener('keydown', event => { if (event.key === 'Enter') act(); });
    });
  }

  // --- charts ---

  // The blocks of a figure's numbers: panel * lines + line, rows of cells; an empty block has no finite value.
  function blocksOf(figure) {
    const [head, ...rest] = figure.data.split('\n');
    const columns = head.replace(/^# /, '').split('\t');
    const blocks = rest.join('\n').split('\n\n\n').map(block =>
      block.split('\n').filter(Boolean).map(row => row.split('\t').map(cell => cell === '' ? NaN : Number(cell))));
    return {columns, blocks};
  }

  const shown = value => Number.isFinite(value) ? String(Number(value.toPrecision(4))) : '–';
  const faint = colour => colour + '22';

  // Datasets of one line in one panel: the line, and its interval as a band (a bar for rows).
  function datasetsOf(figure, line, index, rows, columns) {
    const low = columns.indexOf('low'), high = columns.indexOf('high'), sideways = figure.shape === 'rows';
    const points = rows.map(row => sideways
      ? {x: row[3], y: row[2], low: row[low], high: row[high]} : {x: row[2], y: row[3], low: row[low], high: row[high]});
    const own = {label: line.name, line: index, data: points, borderColor: line.colour, backgroundColor: line.colour,
                 borderDash: line.dash, borderWidth: 2, pointRadius: figure.shape === 'curves' ? 2 : 4, showLine: figure.shape === 'curves' || figure.shape === 'gap'};
    if (figure.shape === 'bars') return [{...own, type: index ? 'line' : 'bar', barPercentage: 1, categoryPercentage: 1}];
    if (low < 0 || line.grey) return [own];
    if (sideways)
      return [own, ...points.map(p => ({line: index, interval: true, data: [{x: p.low, y: p.y}, {x: p.high, y: p.y}], showLine: true,
                                        borderColor: line.colour, borderWidth: 1.5, pointRadius: 0}))];
    const band = (key, fill) => ({line: index, interval: true, data: points.map(p => ({x: p.x, y: p[key]})), showLine: true,
                                  borderColor: line.colour, borderWidth: 0, pointRadius: 0, backgroundColor: faint(line.colour), fill});
    return [own, band('low', false), band('high', '-1')];
  }

  // The nearest point of a line, as an interaction mode of Chart.js: intervals have no values of their own to show.
  if (window.Chart)
    Chart.Interaction.modes.line = (chart, event, {axis}) => {
      let nearest = Infinity, found = [];
      if (!chart.isPointInArea(event)) return found;
      for (const meta of chart.getSortedVisibleDatasetMetas())
        if (!chart.data.datasets[meta.index].interval)
          meta.data.forEach((element, index) => {
            const {x, y} = element.getCenterPoint(), distance = Math.hypot(axis === 'y' ? 0 : x - event.x, y - event.y);
            if (element.skip || distance > nearest) return;
            if (distance < nearest) found = [];
            nearest = distance;
            found.push({element, datasetIndex: meta.index, index});
          });
      return found;
    };

  function chartOf(figure, panel, number, read, canvas) {
    const lines = figure.lines.length, sideways = figure.shape === 'rows';
    const datasets = figure.lines.flatMap((line, index) => {
      const rows = (read.blocks[number * lines + index] || []).filter(row => Number.isFinite(row[3]));
      return rows.length && !line.hidden ? datasetsOf(figure, line, index, rows, read.columns) : [];
    });
    if (!datasets.length) return null;
    const marks = figure.marks.filter(mark => mark.panel === number || mark.panel < 0);
    const axis = (title, logarithmic) => ({type: logarithmic ? 'logarithmic' : 'linear', title: {display: title !== '', text: title}});
    const x = axis(sideways ? panel.axis : panel.x_axis || figure.x_axis, panel.x_axis ? panel.x_logarithmic : figure.x_logarithmic);
    const y = axis(sideways ? '' : panel.axis, !sideways && panel.logarithmic);
    if (marks.length && !sideways) x.ticks = {callback: value => (marks.find(mark => mark.x === value) || {text: ''}).text, stepSize: 1, autoSkip: false};
    if (sideways) Object.assign(y, {reverse: true, ticks: {stepSize: 1, callback: value => (datasets.find(d => d.data[0].y === value && d.label) || {label: ''}).label}});
    const label = item => {
      const point = item.raw, value = sideways ? point.x : point.y;
      const interval = Number.isFinite(point.low) && point.low !== point.high ? ` [${shown(point.low)}, ${shown(point.high)}]` : '';
      return `${item.dataset.label}: ${shown(value)}${interval}`;
    };
    return new Chart(canvas, {
      type: figure.shape === 'bars' ? 'bar' : 'scatter', data: {datasets},
      options: {animation: false, maintainAspectRatio: false, scales: {x, y}, parsing: false, normalized: true,
                interaction: {mode: 'line', axis: sideways ? 'y' : 'xy'},
                plugins: {legend: {display: false},
                          tooltip: {callbacks: {title: items => items.length && !sideways ? `${x.title.text} ${shown(items[0].raw.x)}` : '', label}}}}});
  }

  // Fades or restores the line in every panel.
  function fade(charts, line, faded) {
    for (const chart of charts) {
      for (const set of chart.data.datasets) {
        if (set.line !== line) continue;
        const colour = chart.lines[line].colour;
        set.borderColor = faded ? faint(colour) : colour;
        set.backgroundColor = faded ? 'transparent' : set.interval ? faint(colour) : colour;
        set.order = faded ? 1 : 0;
      }
      chart.update();
    }
  }

  function legendOf(figure, charts) {
    const list = make('p', {className: 'legend'});
    figure.lines.forEach((line, index) => {
      if (line.hidden) return;
      const button = make('button', {type: 'button'}, make('span', {className: 'sample'}), line.name);
      button.firstChild.style.background = line.colour;
      button.setAttribute('aria-pressed', 'true');
      button.addEventListener('click', () => {
        const faded = button.getAttribute('aria-pressed') === 'true';
        button.setAttribute('aria-pressed', String(!faded));
        fade(charts, index, faded);
      });
      list.append(button);
    });
    return list;
  }

  function enlarge(holder) {
    const source = holder.querySelector('script'), figure = source && JSON.parse(source.textContent);
    const caption = holder.querySelector('figcaption').firstChild.textContent;
    const close = make('button', {type: 'button', className: 'close'}, 'Close');
    const dialog = make('dialog', {className: 'enlarged'}, make('p', {className: 'title'}, caption, close));
    const charts = [];
    document.body.append(dialog);
    dialog.showModal();
    if (figure && typeof Chart !== 'undefined' && ['curves', 'gap', 'scatter', 'rows', 'bars'].includes(figure.shape)) {
      const read = blocksOf(figure), panels = make('div', {className: 'panels'});
      dialog.append(panels);
      figure.panels.forEach((panel, number) => {
        const canvas = make('canvas', {}), box = make('div', {className: 'panel'}, make('p', {}, panel.title), make('div', {className: 'canvas'}, canvas));
        panels.append(box);
        const chart = chartOf(figure, panel, number, read, canvas);
        if (chart === null) return box.remove();
        chart.lines = figure.lines;
        charts.push(chart);
      });
      if (figure.shape !== 'rows') panels.before(legendOf(figure, charts));
    } else {
      dialog.append(holder.querySelector('img').cloneNode());
    }
    close.addEventListener('click', () => dialog.close());
    dialog.addEventListener('close', () => { charts.forEach(chart => chart.destroy()); dialog.remove(); });
  }

  document.querySelectorAll('table').forEach(makeSortable);
  document.querySelectorAll('figure').forEach(holder => {
    const button = make('button', {type: 'button', className: 'enlarge'}, 'Enlarge');
    button.addEventListener('click', () => enlarge(holder));
    holder.querySelector('figcaption').append(' ', button);
  });
})();
