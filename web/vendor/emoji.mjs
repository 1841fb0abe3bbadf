// Makes web/static/emoji-list.js, emoji-en.js and emoji-zh.js from the package that vendor.json names, and prints their hashes:
//
//     npm pack emojibase-data@17.0.0 && tar xzf emojibase-data-17.0.0.tgz && node web/vendor/emoji.mjs package

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

// Later ones are squares on the systems of many people.
const UNICODE = 15;
// Words to search by beside the name.
const TAGS = { en: 2, zh: 1 };
const GROUPS = ["smileys", "people", "parts", "animals", "food", "travel", "activities", "objects", "symbols", "flags"];
const PARTS = GROUPS.indexOf("parts");

const folder = process.argv[2];
const read = (path) => JSON.parse(readFileSync(`${folder}/${path}`, "utf8"));
const { version } = read("package.json");

const sorted = (language) => read(`${language}/data.json`)
  .filter((each) => each.group !== undefined && each.group !== PARTS && each.version <= UNICODE)
  .sort((a, b) => a.group - b.group || a.order - b.order);
// Fully qualified, as emoji-test.txt of Unicode has them: nothing says "as a picture" where that is so anyway.
const written = (emoji) => emoji.replace(/(\p{Emoji_Presentation})\ufe0f/gu, "$1");

/** Writes a file and prints its hash. */
function write(name, about, content) {
  const text = `// ${about}, from emojibase-data ${version} (MIT,\n`
    + `// web/vendor/emojibase-data.LICENSE), made by web/vendor/emoji.mjs.\nexport default ${content};\n`;
  writeFileSync(new URL(`../static/${name}`, import.meta.url), text);
  console.log(name, createHash("sha256").update(text).digest("hex"));
}

const emoji = (name) => sorted("en").filter(({ group }) => GROUPS[group] === name).map((each) => written(each.emoji)).join("\n");
const list = GROUPS.filter(emoji).map((name) => `  ${name}: \`${emoji(name)}\`,\n`);
write("emoji-list.js", "Emoji by group", `{\n${list.join("")}}`);
for (const language of Object.keys(TAGS)) {
  const line = ({ label, tags = [] }) => {
    const words = [label, ...tags.filter((tag) => !label.includes(tag)).slice(0, TAGS[language])];
    const within = (word) => ` ${word}`.toLowerCase();
    // Whatever finds a word that another one begins with finds that one, too.
    return words.filter((word) => word === label || !words.some((other) => other !== word && within(other).includes(within(word)))).join("|");
  };
  write(`emoji-${language}.js`, "The name of each emoji and words to search by", `\`${sorted(language).map(line).join("\n")}\``);
}
