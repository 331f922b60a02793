// A table wider than the window says that it goes on. The theme wraps tables when the page has loaded.
window.addEventListener('load', () => {
for (const wrap of document.querySelectorAll('.md-typeset__scrollwrap, article .wide')) {
  const hint = Object.assign(document.createElement('p'), {className: 'scroll-hint', textContent: 'the table goes on to the right →'});
  wrap.before(hint);
  const measure = () => { hint.style.display = wrap.scrollWidth > wrap.clientWidth + 1 ? 'block' : 'none'; };
  measure();
  window.addEventListener('resize', measure);
}
});
// The field above a table keeps the rows whose text has all of its words. Without script it is not shown.
document.querySelectorAll('input.filter').forEach(field => {
  field.hidden = false;
  field.addEventListener('input', () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    document.querySelectorAll('table tbody tr').forEach(row => {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
    });
  });
});
