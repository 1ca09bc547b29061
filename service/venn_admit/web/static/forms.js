// Sends a form, or follows a link, as without scripts if htmx got no page to put in its place: the browser shows why.
// A form that was sent is not sent again by a second click, as long as the browser shows its page.
"use strict";
(() => {
  const plainly = (event) => {
    const asked = event.detail.elt;
    if (asked instanceof HTMLFormElement) asked.submit();
    else if (asked instanceof HTMLAnchorElement) window.location.assign(asked.href);
  };

  let sent = new WeakSet();
  window.addEventListener("pageshow", () => { sent = new WeakSet(); });
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.method !== "post") return;
    if (sent.has(event.target)) event.preventDefault();
    sent.add(event.target);
  });

  document.addEventListener("htmx:responseError", plainly);
  document.addEventListener("htmx:sendError", plainly);
})();
