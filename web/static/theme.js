// Sets the colours before the first paint; a file of its own, since the page allows no inline script.
// The person's choice counts, else the system's colours, also when either changes.
{
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paint = () => {
    const choice = localStorage.getItem("theme");
    const system = dark.matches ? "dark" : "light";
    document.documentElement.dataset.theme = choice === "light" || choice === "dark" ? choice : system;
  };
  dark.addEventListener("change", paint);
  addEventListener("storage", paint);
  addEventListener("theme", paint);
  paint();
}
