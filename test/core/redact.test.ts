// Secrets are masked; a text without any stays byte for byte; the work grows with the text, whatever is in it.
import { describe, expect, it } from "vitest";
import { isSecretName, redactJson, redactText } from "../../src/core/redact.ts";

const SECRETS = `
  password Password passwd pwd MYSQL_PWD pass userPass passphrase passcode secret clientSecret secrets token access_token
  tokens authtoken APIToken x-csrf-token apiKey api_key API-KEY apikey privateKey accessKeyId AWS_ACCESS_KEY_ID auth oauth
  basicAuth authorization Proxy-Authorization bearer jwt idJWT cookie Set-Cookie credential credentials dbCredentials cvv
  cvc pin cardPin ssn iban card cardNumber creditCard signature X-Amz-Signature sig PGPASSWORD spring.datasource.password
  password1 cvv2 oauth2 cards refreshTokens tokensOfUsers`;
const NONE = `
  discard author authority shipping key keyboard idempotencyKey primary_key passenger compass passport tokenizer spinning
  pinned secretary cards2go assign design auth.ts firstPassMs pass_rate auth0Domain maxTokens max_tokens prompt_tokens totalTokens
  tokens_used token_count tokenLimit token_type tokensPerMinute`;
const words = (text: string): string[] => text.trim().split(/\s+/);

describe("a name", () => {
  it.each(["api key", "signing key", ...words(SECRETS)])("such as %s is a secret's", (name) =>
    expect(isSecretName(name)).toBe(true),
  );
  it.each(["", "primary key", ...words(NONE)])("such as %j is none", (name) => expect(isSecretName(name)).toBe(false));
});

describe("JSON text", () => {
  it.each([
    ['{"user":"ada","password":"x"}', '{"user":"ada","password":"***"}'],
    ['{"a":{"apiKey":{"deep":1},"n":1.5}}', '{"a":{"apiKey":"***","n":1.5}}'],
    ['{"token":9007199254740993,"id":9007199254740993}', '{"token":"***","id":9007199254740993}'],
    ['{ "pass\\u0077ord" : [1, {"x": "]"}], "n": 1.50 }', '{ "pass\\u0077ord" : "***", "n": 1.50 }'],
    ['{"url":"postgres://ada:secret@db/x"}', '{"url":"postgres://ada:***@db/x"}'],
    ['{"secret": "x', '{"secret": "***"'],
    ['"secret', '"secret'],
    [
      '{"pin":1234,"shipping":"x","author":"y","discard":true}',
      '{"pin":"***","shipping":"x","author":"y","discard":true}',
    ],
    ['{"password":null,"auth":false,"n":1}', '{"password":null,"auth":false,"n":1}'],
    // JSON inside strings, as deep as it goes.
    ['{"body":"{\\"password\\":\\"x\\",\\"n\\":1}"}', '{"body":"{\\"password\\":\\"***\\",\\"n\\":1}"}'],
    ['{"b":"{\\"b\\":\\"{\\\\\\"pin\\\\\\":1}\\"}"}', '{"b":"{\\"b\\":\\"{\\\\\\"pin\\\\\\":\\\\\\"***\\\\\\"}\\"}"}'],
    ['"{\\"token\\":\\"x\\"}"', '"{\\"token\\":\\"***\\"}"'],
    // Text inside strings.
    ['{"cmd":"psql --password hunter2 -h db"}', '{"cmd":"psql --password *** -h db"}'],
    ['{"line":"password: \\"a b\\"\\nnext"}', '{"line":"password: \\"***\\"\\nnext"}'],
    // Pairs of headers.
    ['[["Host","a"],["Authorization","Bearer x"]]', '[["Host","a"],["Authorization","***"]]'],
    ['["Host","a","Cookie","a=b; c=d","Accept","z"]', '["Host","a","Cookie","***","Accept","z"]'],
    // What is said inside of a list or an object counts there and no further.
    [
      '{"list":["Host","a"],"Cookie":1,"x":"Cookie","y":"z"}',
      '{"list":["Host","a"],"Cookie":"***","x":"Cookie","y":"z"}',
    ],
    ['{"a":{"name":"token"},"value":"x"}', '{"a":{"name":"token"},"value":"x"}'],
    ['{"name":"token","a":{"n":[1]},"value":"x"}', '{"name":"token","a":{"n":[1]},"value":"***"}'],
    ['{"name":"X-Api-Key","value":"x","n":1}', '{"name":"X-Api-Key","value":"***","n":1}'],
    [
      '[{"value":"a b","key":"token"},{"key":"n","value":"x"}]',
      '[{"value":"***","key":"token"},{"key":"n","value":"x"}]',
    ],
  ])("%s is shown as %s", (text, shown) => {
    expect(redactJson(text)).toBe(shown);
    expect(redactJson(shown)).toBe(shown);
  });

  it("without secrets stays as it is, spaces, big numbers and all", () => {
    for (const text of [
      '{ "id": 12345678901234567890, "é": "\\u0000", "n": 1e400 }',
      '{"a":"\\u0070lain","author":"a\\/b","key":"order-1","url":"https://a.b:80/c"}',
    ])
      expect(redactJson(text)).toBe(text);
  });
});

const JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
const PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----";

describe("other text", () => {
  it.each([
    ["postgres//u:hunter2@host", "postgres//u:***@host"],
    ["cannot reach amqp://u:p@host/x?token=abc", "cannot reach amqp://u:***@host/x?token=***"],
    ["password: x", "password: ***"],
    ["password : x, user: ada", "password : ***, user: ada"],
    ["password='a b' user=ada", "password='***' user=ada"],
    ['{"password": "a \\" b"} left', '{"password": "***"} left'],
    ["{ password: { a: 1 }, n: 1 }", "{ password: ***, n: 1 }"],
    ["api key: abc", "api key: ***"],
    ["access key id: AKIA1 seen", "access key id: *** seen"],
    ["run --token x --name y", "run --token *** --name y"],
    ["run --api-key=x", "run --api-key=***"],
    ["PGPASSWORD=hunter2 psql", "PGPASSWORD=*** psql"],
    ["Cookie: a=b; c=d\nHost: x", "Cookie: ***\nHost: x"],
    ["curl -H 'Cookie: a=b; c=d' host", "curl -H 'Cookie: ***' host"],
    ["Set-Cookie: sid=1; Path=/", "Set-Cookie: ***"],
    ["Authorization: Bearer abc", "Authorization: Bearer ***"],
    ["authorization: Basic abc==, accept: x", "authorization: Basic ***, accept: x"],
    ["sent Bearer abc.def and", "sent Bearer *** and"],
    ["X-Api-Key: abc", "X-Api-Key: ***"],
    ["[ 'Authorization', 'Bearer x', 'Host', 'a' ]", "[ 'Authorization', '***', 'Host', 'a' ]"],
    [`got ${JWT}!`, "got ***!"],
    [`key ${PEM} end`, "key -----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY----- end"],
    ["-----BEGIN PRIVATE KEY-----\nMIIE", "-----BEGIN PRIVATE KEY-----***"],
    ["https://s3/x?X-Amz-Signature=abc&n=1", "https://s3/x?X-Amz-Signature=***&n=1"],
    ['body "{\\"password\\":\\"x\\"}" sent', 'body "{\\"password\\":\\"***\\"}" sent'],
  ])("%s is shown as %s", (text, shown) => {
    expect(redactText(text)).toBe(shown);
    expect(redactText(shown)).toBe(shown);
  });

  it.each([
    "at login (file:///app/src/auth.ts:12:5)",
    "the token expired; ask for a new one",
    "password authentication failed for user ada",
    "Access denied (using password: YES)",
    "Auth::login failed, and the cookie jar is empty",
    "shipping: done, author: ada, key: order-1, --key order-1",
    "auth://host/x",
  ])("without a secret stays as it is: %s", (text) => expect(redactText(text)).toBe(text));
});

describe("a secret far into a text", () => {
  it("is masked as one at its beginning", () => {
    const before = "all is well and nothing was asked; ".repeat(100);
    expect(redactText(`${before}password=hunter2`)).toBe(`${before}${redactText("password=hunter2")}`);
    expect(redactText(`${before}password=hunter2`)).not.toContain("hunter2");
  });
});

describe("the work", () => {
  const MIB = 1_048_576;

  it.each([
    ["letters", "a"],
    ["capitals", "A"],
    ["space", " "],
    ["line breaks", "\n"],
    ["quotes", '"'],
    ["backslashes", "\\"],
    ["escaped quotes", '\\"'],
    ["colons", "x:"],
    ["slashes", "://"],
    ["names", "pass"],
    ["pairs", "pass:"],
    ["open values", 'pass:"'],
    ["open brackets", "token:["],
    ["flags", "--token "],
    ["begun keys", "-----BEGIN PRIVATE KEY-----"],
    ["begun tokens", "eyJ."],
    ["begun tokens of one piece", "eyJ"],
    ["bearers", "bearer "],
    ["cookies", "cookie: "],
    ["names in quotes", "'token',"],
    ["brackets", "["],
    ["objects", '{"name":'],
    ["values without an end", '"value":1'],
  ])("on 1 MiB of %s is that of one look at each character", (_what, unit) => {
    const text = unit.repeat(Math.ceil(MIB / unit.length));
    redactText(text);
    redactJson(text);
    redactJson(JSON.stringify({ secret: 1, text }));
  });

  it("on a token of 16 MiB ends, and so it does where the token breaks off", () => {
    const part = `eyJ${"a".repeat(16 * MIB)}`;
    expect(redactText(part)).toBe(part);
    expect(redactText(`${part}.`)).toBe(`${part}.`);
    expect(redactText(`x ${part}.${part}.${part} y`)).toBe("x *** y");
  });

  it("on a payload of 16 MiB ends, with everything masked", () => {
    const text = JSON.stringify({ password: "x".repeat(4 * MIB), a: '\\"'.repeat(2 * MIB), n: "y".repeat(8 * MIB) });
    const shown = redactJson(text);
    expect(shown.startsWith('{"password":"***","a":')).toBe(true);
    expect(shown).toHaveLength(text.length - 4 * MIB + 3);
  });
});
