// Starts the tools, and follows the address.
'use strict';

(async () => {
  for (const place of document.querySelectorAll('.tool .message')) place.textContent = 'loading gepolab …';
  try {
    for (const needed of ['WebAssembly', 'Worker', 'DecompressionStream'])
      if (!(needed in window)) throw new Error(`this browser has no ${needed} (Chrome 80, Firefox 113 and Safari 16.4 have)`);
    const [presets, algorithms] = [await engine.json(['list', 'presets']), await engine.json(['list', 'algorithms'])];
    start_calculator(presets);
    start_lens(algorithms);
    start_dial(algorithms);
    start_log(algorithms);
    start_map();
    addEventListener('hashchange', follow_address);
    follow_address();
  } catch (problem) {
    for (const place of document.querySelectorAll('.tool .message')) {
      place.classList.add('error');
      place.textContent = 'gepolab did not start here: ' + problem.message;
    }
  }
})();
