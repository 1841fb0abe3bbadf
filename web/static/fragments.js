// The parts that open beside or over a conversation, by the address after `#`: `#about` (the panel), `#settings/privacy`. Going there is
// a step of its own for the browser's back button; closing goes back by as many steps as were made.

/** `parts`: by the first word, {open(rest), close()}. Answers {follow, lead, leave, whenLeft}. */
export function fragments(parts) {
  // The word of the part that is open.
  let open = null;
  // The word of the part that was closed, while the browser is on its way back; the address is still that of the part.
  let left = null;

  const shut = () => {
    const was = parts[open];
    open = null;
    was?.close();
  };
  const wordOf = (hash) => hash.match(/^#([a-z]+)(?:\/|$)/)?.[1];
  /** Shows what the address names. */
  const follow = () => {
    const was = left;
    left = null;
    // It was open already where the steps began.
    if (was && was === wordOf(location.hash)) history.replaceState(history.state, "", location.pathname);
    const word = wordOf(location.hash);
    if (open && open !== word) shut();
    if (!parts[word]) return;
    open = word;
    parts[word].open(location.hash.slice(word.length + 2));
  };
  /** Goes to `hash`; `inPlace`: without a step. The steps are those within one part. */
  const lead = (hash, inPlace = false) => whenLeft(() => {
    const { steps = 0, ...state } = history.state ?? {};
    if (hash !== location.hash) {
      const made = open === wordOf(hash) ? steps : 0;
      inPlace ? history.replaceState({ ...state, steps: made }, "", hash) : history.pushState({ ...state, steps: made + 1 }, "", hash);
    }
    follow();
  });
  /** Closes a part, if it is open, and takes it out of the address. */
  const leave = (word) => {
    if (open !== word) return;
    shut();
    const { steps, ...state } = history.state ?? {};
    if (!steps) return history.replaceState(state, "", location.pathname);
    left = word;
    history.go(-steps);
  };
  /** Does `work` once the address is that of the page again. */
  const whenLeft = (work) => (left ? addEventListener("popstate", work, { once: true }) : work());

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (!link || !parts[wordOf(link.hash)] || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    lead(link.hash, "inPlace" in link.dataset && matchMedia("(min-width: 720px)").matches);
  });
  return { follow, lead, leave, whenLeft };
}
