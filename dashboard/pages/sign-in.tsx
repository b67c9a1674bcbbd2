// How a person comes in: by the link that `redrive up` prints, or with a token.
import { useState } from "preact/hooks";
import { api, keep, saidOf, session } from "../server.ts";

/** The page before every other. */
export function SignIn({ problem }: { problem: string | null }) {
  const [error, setError] = useState(problem);
  const isOwn = session.value?.capabilities.includes("sign-in") ?? true;
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const { value } = (event.currentTarget as HTMLFormElement).elements.namedItem("token") as HTMLInputElement;
    const [, code] = /#code=([\w-]+)/.exec(value) ?? [];
    try {
      keep(await api.session.start(code === undefined ? { token: value.trim() } : { code }));
    } catch (said) {
      setError(saidOf(said));
    }
  };
  return (
    <main class="sign-in">
      <h1>
        <img src="icon.svg" alt="" width="28" height="28" /> Redrive
      </h1>
      {error !== null && (
        <p class="problem" role="alert">
          {error}
        </p>
      )}
      {isOwn ? (
        <form onSubmit={(event) => void submit(event)}>
          <p>
            Open the link that <code>redrive up</code> printed. It is good for five minutes and one sign-in; this prints
            another:
          </p>
          <code class="block">$ redrive up --link</code>
          <label>
            Or paste a token, or the whole link
            <input name="token" type="password" autocomplete="off" required />
          </label>
          <button type="submit" class="main">
            Sign in
          </button>
        </form>
      ) : (
        <p>The application that serves this page does not know you. Sign in there, and load this page again.</p>
      )}
    </main>
  );
}
