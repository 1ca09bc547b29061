// Has single keys stand for the buttons of a review: a digit for each class, and n and p. Without this, their access keys
// do, and Tab reaches them.
"use strict";
document.addEventListener("keydown", (pressed) => {
  if (pressed.ctrlKey || pressed.altKey || pressed.metaKey || pressed.repeat) return;
  if (pressed.target.closest("input, select, textarea")) return;
  const button = document.querySelector(`button[accesskey="${CSS.escape(pressed.key)}"]`);
  if (button) button.click();
});
