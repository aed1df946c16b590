// What is wider than the paper is made smaller: formulas, tables, figures.
() => {
  const wide = 'mjx-container[display="true"], table, .ts-figure > svg, img';
  for (const box of document.querySelectorAll(`main :is(${wide})`)) {
    const room = box.parentElement.clientWidth;
    if (room && box.scrollWidth > room + 1) box.style.zoom = (room - 4) / box.scrollWidth; // letters don't shrink evenly
  }
}
