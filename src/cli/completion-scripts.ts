// The completion scripts of the shells. Each walks the words before the cursor to the command that they name, and
// offers the words that may follow. After a flag that takes a value, and where no name is known, the shell offers
// files.

/** A word that may follow, with its description. */
interface Offer {
  readonly name: string;
  readonly about: string;
}

/** The words that may follow one command; the program itself has an empty path. */
export interface CompletionPlace {
  readonly path: readonly string[];
  readonly names: readonly Offer[];
  readonly flags: readonly (Offer & { readonly takesValue: boolean })[];
}

/** The script for each shell. */
export const COMPLETION_SCRIPTS = { bash, zsh, fish } as const satisfies Record<
  string,
  (places: readonly CompletionPlace[]) => string
>;

const route = ({ path }: CompletionPlace): string => path.map((name) => `/${name}`).join("");

/** The routes to all commands, as alternatives of a `case`. */
const routes = (places: readonly CompletionPlace[], between: string): string =>
  places
    .map(route)
    .filter((each) => each !== "")
    .join(between);

/** Text in single quotes, which every shell takes literally except for the quote itself. */
const quoted = (text: string): string => `'${text.replaceAll("\n", " ").replaceAll("'", `'\\''`)}'`;

const valued = (place: CompletionPlace): string[] =>
  place.flags.filter(({ takesValue }) => takesValue).map(({ name }) => name);

const namesOf = (offers: readonly Offer[]): string => offers.map(({ name }) => name).join(" ");

function bash(places: readonly CompletionPlace[]): string {
  const cases = places.map((place) =>
    [
      `    ${quoted(route(place))})`,
      `      names=${quoted(namesOf(place.names))}`,
      `      flags=${quoted(namesOf(place.flags))}`,
      `      valued=${quoted(` ${valued(place).join(" ")} `)} ;;`,
    ].join("\n"),
  );
  return `# Completion of redrive for bash.
_redrive() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} route= word names= flags= valued=
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in --) return ;; esac
    case $route/$word in
      ${routes(places, " | ")}) route=$route/$word ;;
    esac
  done
  case $route in
${cases.join("\n")}
  esac
  case $valued in *" $prev "*) return ;; esac
  case $cur in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -W "$names" -- "$cur")) ;;
  esac
}
complete -o default -F _redrive redrive
`;
}

/** In zsh a colon ends the name of an offer, so the description follows it. */
const described = (offers: readonly Offer[]): string =>
  offers.map(({ name, about }) => quoted(about === "" ? name : `${name}:${about}`)).join(" ");

function zsh(places: readonly CompletionPlace[]): string {
  const cases = places.map((place) =>
    [
      `    (${quoted(route(place))})`,
      `      names=(${described(place.names)})`,
      `      flags=(${described(place.flags)})`,
      `      valued=(${valued(place).join(" ")}) ;;`,
    ].join("\n"),
  );
  return `#compdef redrive
# Completion of redrive for zsh.
_redrive() {
  local route= word
  local -a names flags valued
  for word in "\${(@)words[2,CURRENT-1]}"; do
    [[ $word == -- ]] && { _files; return }
    case $route/$word in
      (${routes(places, "|")}) route=$route/$word ;;
    esac
  done
  case $route in
${cases.join("\n")}
  esac
  if (( \${valued[(Ie)\${words[CURRENT-1]}]} )); then
    _files
  elif [[ \${words[CURRENT]} == -* ]]; then
    _describe -t options option flags
  elif (( \${#names} )); then
    _describe -t commands command names
  else
    _files
  fi
}
if [[ \${funcstack[1]} == _redrive ]]; then
  _redrive "$@"
else
  compdef _redrive redrive
fi
`;
}

/** In fish a backslash also counts inside single quotes. */
const fishQuoted = (text: string): string =>
  `'${text.replaceAll("\n", " ").replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

function fish(places: readonly CompletionPlace[]): string {
  const lines = places.flatMap((place) => {
    const here = `complete -c redrive -n "__redrive_at '${route(place)}'"`;
    return [
      ...place.names.map(({ name, about }) => `${here} -f -a ${name}${about === "" ? "" : ` -d ${fishQuoted(about)}`}`),
      ...place.flags.map(
        ({ name, about, takesValue }) =>
          `${here} -l ${name.slice(2)}${takesValue ? " -r" : ""} -d ${fishQuoted(about)}`,
      ),
    ];
  });
  return `# Completion of redrive for fish.
function __redrive_at
  set -l route ''
  for word in (commandline -opc)[2..-1]
    switch $word
      case --
        return 1
    end
    switch $route/$word
      case ${routes(places, " ")}
        set route $route/$word
    end
  end
  test "$route" = "$argv[1]"
end
${lines.join("\n")}
`;
}
