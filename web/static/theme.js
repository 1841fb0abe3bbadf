// Sets the colours before the first paint; in a file of its own, since the page allows no inline script.
{
  const choice = localStorage.getItem("theme");
  if (choice === "light" || choice === "dark") document.documentElement.dataset.theme = choice;
}
