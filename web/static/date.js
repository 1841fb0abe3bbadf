// The dialog that leads to the messages of a day.

import { $ } from "./dom.js";

/** Answers what opens it. `lead(time)` shows the first message from then on (milliseconds since 1970 UTC). */
export function dateDialog(lead) {
  $("date-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const [year, month, day] = $("date-day").value.split("-").map(Number);
    if (!day) return $("date-day").focus();
    $("date").close();
    // The day as it is where the person is.
    lead(new Date(year, month - 1, day).getTime());
  });
  return () => {
    $("date-day").max = new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
    $("date").showModal();
  };
}
