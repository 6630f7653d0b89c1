// Numbers and words as a person reads them.
nmtflex.text = (() => {
  "use strict";

  const NONE = "–";
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const byDigits = new Map();

  /** Write a number with so many digits after the point; a dash where there is none. */
  function fixed(value, digits) {
    if (value === null || value === undefined) return NONE;
    if (!byDigits.has(digits)) {
      const places = { minimumFractionDigits: digits, maximumFractionDigits: digits };
      byDigits.set(digits, new Intl.NumberFormat("en", places));
    }
    return byDigits.get(digits).format(value).replace("-", "−");
  }

  /** Write a whole number, its thousands apart. */
  function count(value) {
    return value === null || value === undefined ? NONE : whole.format(value);
  }

  /** Write a number of things: "1 sentence", "2 sentences". */
  function counted(value, noun) {
    return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
  }

  /** Write a score: percentages with two digits, shares such as RIBES with four. */
  function score(metric, value) {
    return fixed(value, metric.startsWith("RIBES") ? 4 : 2);
  }

  /** Write a threshold, at most four significant digits. */
  function threshold(tau) {
    return tau === null ? "no threshold" : `τ = ${Number(tau.toPrecision(4))}`;
  }

  /** Fold what a search shall not tell apart: case, full and half width, the two small sigmas. */
  function fold(text) {
    return text.normalize("NFKC").toLowerCase().replaceAll("ς", "σ");
  }

  /** Return a token as it can be seen: spaces as ␣, what is no character as U+FFFD. */
  function visible(token) {
    if (/^\s+$/u.test(token)) return "␣".repeat(token.length);
    return token.replace(/[\p{Cc}\p{Cs}\p{Cn}]/gu, "\ufffd");
  }

  const SCRIPTS = [
    ["ja", /[\p{Script=Hiragana}\p{Script=Katakana}]/u],
    ["ko", /\p{Script=Hangul}/u],
    ["zh", /\p{Script=Han}/u],
    ["el", /\p{Script=Greek}/u],
    ["ar", /\p{Script=Arabic}/u],
    ["he", /\p{Script=Hebrew}/u],
    ["th", /\p{Script=Thai}/u],
    ["hi", /\p{Script=Devanagari}/u],
  ];

  /** Guess a language that decides fonts, from a sample of its texts; null where none does. */
  function guessLanguage(texts) {
    const sample = texts.slice(0, 200);
    const found = SCRIPTS.find(([, script]) => {
      const written = sample.filter((text) => script.test(text)).length;
      return written > sample.length / 4;
    });
    return found ? found[0] : null;
  }

  /** Tell whether a token stands upright in a column: Chinese, Japanese, Korean. */
  function isUpright(token) {
    return /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(token);
  }

  return {
    count,
    counted,
    fixed,
    fold,
    guessLanguage,
    isUpright,
    score,
    threshold,
    visible,
  };
})();
