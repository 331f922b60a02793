// What all tools of the page share: the thread that runs gepolab, elements, the state in the address, drawings.
'use strict';

// --- elements: text is always set as text, so nothing that a file or an address holds becomes markup ---

const SVG = 'http://www.w3.org/2000/svg';

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) element.append(child);
  return element;
}
const el = (name, attributes, ...children) => filled(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => filled(document.createElementNS(SVG, name), attributes, children);
const show = (place, ...children) => place.replaceChildren(...children.flat(Infinity).filter(child => child !== null));

// --- numbers as they are shown ---

function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(Math.max(0, digits - 1));
  return size >= 10 ** digits ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(digits)));
}
const percent = value => value === null || value === undefined ? '–' : number(100 * value) + ' %';

function duration(seconds) {
  if (seconds < 120) return number(seconds) + ' s';
  if (seconds < 7200) return number(seconds / 60) + ' min';
  return seconds < 172800 ? number(seconds / 3600) + ' h' : number(seconds / 86400) + ' d';
}

// --- the command, in a thread of its own ---

const engine = {
  waiting: new Map(), next: 0, ready: null,

  async start() {
    const packed = Uint8Array.from(atob(GEPOLAB_ENGINE.wasm), c => c.charCodeAt(0));
    const wasm = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
    this.worker = new Worker(URL.createObjectURL(new Blob([GEPOLAB_ENGINE.thread], {type: 'text/javascript'})));
    this.worker.onmessage = ({data}) => {
      const done = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.broken) { // what the fault leaves in memory is unknown
        this.worker.terminate();
        this.ready = null;
        for (const answer of this.waiting.values()) answer({...data, stderr: 'the thread ended: ' + data.stderr});
        this.waiting.clear();
      }
      if (done) done(data);
    };
    return this.ask({wasm}, [wasm]);
  },

  ask(message, transfer) {
    const id = ++this.next;
    return new Promise(done => {
      this.waiting.set(id, done);
      this.worker.postMessage({...message, id}, transfer);
    });
  },

  // {code, stdout, stderr, files, ms} of `gepolab ARGV…` in a folder with these files.
  async run(argv, files, wants) {
    this.ready = this.ready || this.start();
    await this.ready;
    return this.ask({argv, files, wants});
  },

  // The JSON that a command prints; throws its message where it fails.
  async json(argv, files) {
    const answer = await this.run([...argv, '--json'], files);
    if (answer.code !== 0) throw new Error(answer.stderr.trim() || `exit code ${answer.code}`);
    return JSON.parse(answer.stdout);
  },
};

// Runs `work` for the newest of many calls: while one is under way, only the last of those that come is kept.
function newest(work) {
  let busy = false, again = null;
  return async function call(...values) {
    if (busy) { again = values; return; }
    busy = true;
    try { await work(...values); } finally { busy = false; }
    if (again) { const last = again; again = null; call(...last); }
  };
}

// --- tools ---

// A tool has a name, the id of its section, the fields that its state consists of, and update(state), which computes
// and shows. Fields are the inputs with a name in its section; the address holds those that differ from the defaults.
const tools = [];

class Tool {
  constructor(name, update) {
    this.name = name;
    this.place = document.getElementById(name);
    this.message = this.place.querySelector('.message');
    this.update = newest(async () => {
      const from = performance.now();
      this.place.setAttribute('aria-busy', 'true');
      try {
        const said = await update(this.state(), this);
        this.message.classList.remove('error');
        show(this.message, said || `answered in ${number(performance.now() - from)} ms`);
      } catch (problem) {
        this.message.classList.add('error');
        show(this.message, problem.message);
      }
      this.last = performance.now() - from;
      this.place.removeAttribute('aria-busy');
      this.place.dispatchEvent(new Event('answered'));
    });
    this.place.addEventListener('input', event => this.changed(event));
    this.place.querySelector('.copy-link').addEventListener('click', event => copy(event.target, location.href));
    tools.push(this);
  }

  fields() { return [...this.place.querySelectorAll('[name]')]; }

  state() { return Object.fromEntries(this.fields().map(field => [field.name, Tool.value(field)])); }

  static value(field) {
    if (field.type === 'checkbox') return field.checked;
    if (field.multiple) return [...field.selectedOptions].map(option => option.value);
    return field.value;
  }

  static initial(field) {
    if (field.type === 'checkbox') return field.defaultChecked;
    if (field.multiple) return [...field.options].filter(option => option.defaultSelected).map(option => option.value);
    if (field.tagName === 'SELECT') return ([...field.options].find(option => option.defaultSelected) || field.options[0] || {}).value;
    return field.defaultValue;
  }

  static text(value) { return Array.isArray(value) ? value.join(' ') : String(value); }

  set(field, text) {
    if (field.type === 'checkbox') field.checked = text === 'true';
    else if (field.multiple) for (const option of field.options) option.selected = text.split(' ').includes(option.value);
    else field.value = text;
    this.beside(field);
  }

  // A slider and the number beside it show one value; the number is the field.
  beside(field) {
    const slider = this.place.querySelector(`[data-for="${field.name}"]`);
    if (slider) slider.value = slider.dataset.scale === 'log' ? Math.log10(Math.max(Number(field.value), 1e-9)) : field.value;
  }

  changed({target}) {
    if (target.dataset.for) {
      const field = this.place.querySelector(`[name="${target.dataset.for}"]`);
      field.value = target.dataset.scale === 'log' ? Number((10 ** target.value).toPrecision(2)) : target.value;
    } else if (target.name) this.beside(target);
    clearTimeout(this.soon);
    this.soon = setTimeout(() => { this.keep(); this.update(); }, 30);
  }

  keep() {
    const kept = new URLSearchParams();
    for (const field of this.fields()) {
      const text = Tool.text(Tool.value(field));
      if (text !== Tool.text(Tool.initial(field))) kept.set(field.name, text);
    }
    const text = kept.toString();
    history.replaceState(null, '', '#' + this.name + (text ? '?' + text : ''));
  }

  open(parameters) {
    for (const tool of tools) tool.place.hidden = tool !== this;
    for (const link of document.querySelectorAll('.tool-tabs a'))
      link.toggleAttribute('aria-current', link.getAttribute('href') === '#' + this.name);
    // An address with a state has the whole of it; one without returns to what the tool had.
    const given = new URLSearchParams(parameters);
    for (const field of this.fields()) {
      if (parameters) this.set(field, given.has(field.name) ? given.get(field.name) : Tool.text(Tool.initial(field)));
      this.beside(field);
    }
    if (!parameters) this.keep();
    this.update();
  }
}

function follow_address() {
  const [name, parameters] = location.hash.slice(1).split('?');
  (tools.find(tool => tool.name === name) || tools[0]).open(parameters || '');
}

async function copy(button, text) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'copied';
  } catch {
    const area = el('textarea', {class: 'copied'}, text); // pages from a file may not use the clipboard: the text is selected
    button.after(area);
    area.select();
    button.textContent = document.execCommand('copy') ? 'copied' : 'select and copy';
    setTimeout(() => area.remove(), 4000);
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

// A word as a shell takes it literally.
const quoted = word => /^[\w%+,./:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

// A table from rows of cells; a cell is a text, a number or an element.
function table_of(head, rows, attributes) {
  return el('div', {class: 'wide'}, el('table', attributes, el('thead', {}, el('tr', {}, head.map(cell => el('th', {}, cell)))),
    el('tbody', {}, rows.map(row => el('tr', {}, row.map(cell => cell instanceof Element && cell.tagName === 'TD' ? cell : el('td', {}, cell)))))));
}

// --- drawings ---

// Ticks at round values within a range.
function ticks(low, high, wanted = 6) {
  const raw = (high - low) / wanted, size = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map(factor => factor * size).find(candidate => candidate >= raw) || 1;
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step) found.push(Number(tick.toPrecision(12)));
  return found;
}

// Powers of ten within a range; with few of them, 2 and 5 between.
function log_ticks(low, high) {
  const found = [], few = Math.log10(high / low) < 2.5;
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e)
    for (const factor of few ? [1, 2, 5] : [1]) {
      const tick = factor * 10 ** e;
      if (tick >= low * 0.999 && tick <= high * 1.001) found.push(tick);
    }
  return found;
}

// An empty drawing with axes. x and y: {low, high, label, log, ticks, text}. Gives the element and two functions from
// values to places.
function axes({width = 640, height = 260, left = 56, x, y, title}) {
  width = Math.min(width, document.documentElement.clientWidth - 30); // text keeps its size in a narrow window
  const right = 20, top = 10, bottom = 40, inner_w = width - left - right, inner_h = height - top - bottom;
  const scale = axis => value => axis.log ? Math.log(value / axis.low) / Math.log(axis.high / axis.low) : (value - axis.low) / (axis.high - axis.low || 1);
  const sx = scale(x), sy = scale(y), to_x = v => left + sx(v) * inner_w, to_y = v => top + (1 - sy(v)) * inner_h;
  const marks = axis => axis.ticks || (axis.log ? log_ticks(axis.low, axis.high) : ticks(axis.low, axis.high));
  const text = axis => axis.text || (tick => axis.log ? number(tick, 2) : number(tick));
  const element = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': title, class: 'plot'},
    marks(x).map(t => [svg('line', {x1: to_x(t), x2: to_x(t), y1: top, y2: top + inner_h, class: 'grid'}),
                       svg('text', {x: to_x(t), y: top + inner_h + 15, 'text-anchor': 'middle'}, text(x)(t))]),
    marks(y).map(t => [svg('line', {x1: left, x2: left + inner_w, y1: to_y(t), y2: to_y(t), class: 'grid'}),
                       svg('text', {x: left - 6, y: to_y(t) + 4, 'text-anchor': 'end'}, text(y)(t))]),
    svg('text', {x: left + inner_w / 2, y: height - 6, 'text-anchor': 'middle'}, x.label),
    y.label ? svg('text', {x: 12, y: top + inner_h / 2, 'text-anchor': 'middle', transform: `rotate(-90 12 ${top + inner_h / 2})`}, y.label) : null);
  return {element, x: to_x, y: to_y, left, right: left + inner_w, top, bottom: top + inner_h};
}

const titled = (shape, text) => { shape.append(svg('title', {}, text)); return shape; };
const COLOURS = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8'];
