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
