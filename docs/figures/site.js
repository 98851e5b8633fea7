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

// A search adds a `*` to each word, so that "is" and "a" find every page. They are left out here.
const STOP = new Set(
  (
    "a about all an and any are as at be been but by can could did do does for from get had has" +
    " have how i if in into is it its me my of on one or our should so than that the their them" +
    " then there these they this to too us was we were what when where which who why will with" +
    " would you your"
  ).split(" "),
);
const QUERY = 2; // the type of Material's messages to its search
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  if (message?.type === QUERY && typeof message.data === "string") {
    const words = message.data.split(/\s+/).filter((word) => !STOP.has(word.toLowerCase()));
    message = { ...message, data: words.join(" ") || message.data };
  }
  return post.call(this, message, ...rest);
};
