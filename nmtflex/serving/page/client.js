/** Requests to the server, and what it refuses in words for the reader. */

/** The server refused; the message is for the reader. */
export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }

  /** Whether the same request may succeed later. */
  get passing() {
    return [0, 408, 429, 500, 502, 503, 504].includes(this.status);
  }
}

const SAID = {
  0: "The server cannot be reached.",
  403: "The API key is not valid.",
  413: "The text is too long for this server.",
  429: "There are too many requests at the moment. Please wait a little.",
  502: "The server cannot be reached.",
  503: "The server is busy and could not finish in time.",
  504: "The server is busy and could not finish in time.",
};

function inWords(status, said) {
  if (SAID[status]) return SAID[status];
  if (status >= 500 || !said) return "The server could not translate this.";
  const short = String(said).replace(/^Invalid request: /, "");
  return `${short[0].toUpperCase()}${short.slice(1)}.`.replace(/([.!?])\.$/, "$1");
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw error.name === "AbortError" ? error : new Refused(inWords(0), 0);
  }
  const answer = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return {};
  });
  if (response.ok) return answer;
  throw new Refused(inWords(response.status, answer.error), response.status);
}

export const languages = () => ask("languages");
export const settings = () => ask("frontend/settings");

/** Send fields to a route. */
export function send(route, fields, signal) {
  const headers = { "Content-Type": "application/json" };
  return ask(route, { method: "POST", headers, body: JSON.stringify(fields), signal });
}
