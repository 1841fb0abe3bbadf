// The dialog that leads to the messages of a day.

import { $ } from "./dom.js";

/**
 * When a day ("2026-03-04") begins where the person is, or one so many days later: milliseconds since 1970 UTC; null: no day is given.
 */
export function dayAt(value, later = 0) {
  const [year, month, day] = value.split("-").map(Number);
  return day ? new Date(year, month - 1, day + later).getTime() : null;
}

/** Answers what opens it. `lead(time)` shows the first message from then on (milliseconds since 1970 UTC). */
export function dateDialog(lead) {
  $("date-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const time = dayAt($("date-day").value);
    if (time === null) return $("date-day").focus();
    $("date").close();
    lead(time);
  });
  return () => {
    $("date-day").max = new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
    $("date").showModal();
  };
}
