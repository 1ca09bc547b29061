// Sends a form, or follows a link, as without scripts if htmx got no page to put in its place: the browser shows why.
"use strict";
(() => {
  const plainly = (event) => {
    const asked = event.detail.elt;
    if (asked instanceof HTMLFormElement) asked.submit();
    else if (asked instanceof HTMLAnchorElement) window.location.assign(asked.href);
  };

  document.addEventListener("htmx:responseError", plainly);
  document.addEventListener("htmx:sendError", plainly);
})();
