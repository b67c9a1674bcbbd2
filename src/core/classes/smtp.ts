// SMTP (nodemailer): `responseCode` is the server's reply, where 4xx passes and 5xx does not, the other way round than
// HTTP's 5xx. The enhanced code (5.7.8) and the text tell refused credentials and sending limits from refused mails.

import { readText } from "../error-shape.ts";
import { type Family, readNumber, table } from "./clue.ts";

const CODES = table({
  authentication: "EAUTH ENOAUTH EOAUTH2",
  validation: "EENVELOPE EMESSAGE",
  network: "ECONNECTION ESOCKET EDNS EPROXY ETLS EPROTOCOL EFETCH",
  transient: "ESTREAM EMAXLIMIT",
  permanent: "ECONFIG EREQUIRETLS EFILEACCESS EURLACCESS ESENDMAIL",
});
const LIMIT = /\b(?:rate|too many|too fast|limit|quota|throttl\w*|slow down)\b/i;
const SIZE = /\bsize|\blength|large|mailbox (?:is )?full|storage|recipients\b/i;

/** SMTP. */
export const smtp: Family = ({ error, code, message }) => {
  const reply = readNumber(error, "responseCode");
  if (reply === undefined || reply < 400 || reply > 599) {
    const isTls = (code === "ESOCKET" || code === "ETLS") && /certificate|wrong version number/i.test(message);
    return isTls ? "permanent" : CODES.get(code);
  }
  const text = (readText(error, "response") ?? message).slice(0, 512);
  const enhanced = /\b[45]\.\d{1,3}\.\d{1,3}\b/.exec(text)?.[0] ?? "";
  const isLimit = LIMIT.test(text) && !SIZE.test(text) && !/^[45]\.(?:2\.2|2\.3|3\.4|5\.3)$/.test(enhanced);
  if (reply < 500) return isLimit ? "rate_limited" : "transient";
  if (enhanced === "5.4.5" || isLimit) return "rate_limited";
  const isLogin = [530, 534, 535, 538].includes(reply) || /^5\.7\.(?:8|9|14)$/.test(enhanced);
  return isLogin || code === "EAUTH" ? "authentication" : "permanent";
};
