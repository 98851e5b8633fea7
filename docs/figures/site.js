// A box above a table in <div class="filtered"> hides the rows that lack what is typed.
document$.subscribe(() => {
  for (const part of document.querySelectorAll(".filtered")) {
    const box = document.createElement("input");
    box.type = "search";
    box.placeholder = "Filter rows";
    box.ariaLabel = "Filter rows";
    const rows = [...part.querySelectorAll("tr")].slice(1);
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
    part.prepend(box);
  }
});
