// Reloads the table of jobs as soon as its newest running job advances. Without this, htmx reloads it now and then;
// without any script, it stays as it was when the page was opened.
"use strict";
(() => {
  let stream = null;

  const advanced = () => window.htmx.trigger("#jobs", "advanced");

  const stop = () => {
    if (stream) stream.close();
    stream = null;
  };

  const follow = () => {
    const jobs = document.getElementById("jobs");
    const address = jobs && jobs.dataset.events ? new URL(jobs.dataset.events, window.location.href).href : null;
    if (stream && stream.url === address) return;
    stop();
    if (!address) return;
    stream = new EventSource(address);
    stream.addEventListener("progress", advanced);
    stream.addEventListener("end", () => { stop(); advanced(); });
  };

  document.addEventListener("DOMContentLoaded", follow);
  document.addEventListener("htmx:afterSettle", follow);
  window.addEventListener("pagehide", stop);
})();
