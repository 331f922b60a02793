// Diagnosis of a log that is dropped on the page, by `gepolab diagnose`.
'use strict';

const LARGEST_LOG = 512 * 1024 * 1024;

function start_log(algorithms) {
  const place = document.getElementById('log'), input = place.querySelector('input[type=file]'), drop = place.querySelector('.drop');
  place.querySelector('[name=algorithm]').replaceChildren(el('option', {value: ''}, 'as the log says'), ...algorithms.map(a => el('option', {value: a.name}, a.name)));
  let files = {};
  const argv = state => ['diagnose', ...(state.algorithm ? ['-a', state.algorithm] : []), ...Object.keys(files)];
  const tool = new Tool('log', async state => {
    show(place.querySelector('.recipe'), Object.keys(files).length ? 'gepolab ' + argv(state).map(quoted).join(' ') + ' -o page.html' : 'gepolab diagnose LOG… -o page.html');
    if (Object.keys(files).length === 0) return 'drop a log, or choose files';
    show(place.querySelector('.answer'));
    const answer = await engine.run([...argv(state), '-o', 'page.html', '--recipe', 'effect.yaml'], files, ['page.html', 'effect.yaml']);
    // Without a change to show, --recipe is refused: the page alone.
    const alone = answer.files['page.html'] ? answer : await engine.run([...argv(state), '-o', 'page.html'], files, ['page.html']);
    if (!alone.files['page.html']) throw new Error(alone.stderr.trim());
    const frame = el('iframe', {sandbox: '', class: 'page', title: 'diagnosis'});
    frame.srcdoc = alone.files['page.html'];
    show(place.querySelector('.answer'), frame, alone.files['effect.yaml'] ? el('h3', {}, 'A recipe that shows the effect of the first change') : null,
      alone.files['effect.yaml'] ? el('pre', {class: 'recipe', tabindex: 0}, alone.files['effect.yaml']) : null);
    return `${Object.keys(files).join(', ')}: read and judged in ${number(alone.ms)} ms`;
  });
  async function take(list) {
    const chosen = [...list], bytes = chosen.reduce((sum, file) => sum + file.size, 0);
    if (bytes > LARGEST_LOG) {
      tool.message.classList.add('error');
      show(tool.message, `${number(bytes / 2 ** 20)} MiB; at most ${LARGEST_LOG / 2 ** 20} MiB fit here. Use the command.`);
      return;
    }
    files = {};
    // Names become arguments: none may begin like an option.
    for (const file of chosen) files[file.name.replace(/^-+/, '')] = new Uint8Array(await file.arrayBuffer());
    tool.update();
  }
  input.addEventListener('change', () => take(input.files));
  for (const name of ['dragenter', 'dragover']) drop.addEventListener(name, event => { event.preventDefault(); drop.classList.add('over'); });
  for (const name of ['dragleave', 'drop']) drop.addEventListener(name, () => drop.classList.remove('over'));
  drop.addEventListener('drop', event => { event.preventDefault(); take(event.dataTransfer.files); });
  place.querySelector('.copy-recipe').addEventListener('click', event => copy(event.target, place.querySelector('.recipe').textContent));
}
