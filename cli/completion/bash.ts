import { allCommands, type CommandNode, type FlagNode } from './command-tree.js'

/**
 * Completion for bash: one function that finds the command among the words before the cursor, and offers its flags,
 * the commands below it, and the values of a flag. bash gives `--flag=value` as three words.
 */
export function bashCompletion(root: CommandNode): string {
  const nodes = allCommands(root)
  const flags = [...new Map(nodes.flatMap((node) => node.flags).map((flag) => [flag.long, flag])).values()]
  return `# dealgate completion for bash: source it, or put it into a folder of bash-completion
_dealgate() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} command= skip= word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $word == '=' ]]; then skip=1; continue; fi
    if [[ $skip ]]; then skip=; continue; fi
    case $word in
      ${flags
        .filter(({ required }) => required)
        .map(({ long }) => long)
        .join(' | ')}) skip=1 ;;
    esac
    case "$command $word" in
      ${nodes
        .filter(({ path }) => path !== '')
        .map(({ path }) => `'${path.includes(' ') ? path : ` ${path}`}'`)
        .join(' | ')}) command=\${command:+$command }$word ;;
    esac
  done
  if [[ $cur == '=' ]]; then cur=; elif [[ $prev == '=' ]]; then prev=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  case $prev in
${flags
  .filter((flag) => flag.words.length > 0 || flag.file)
  .map(valueCase)
  .join('\n')}
  esac
  case $prev in
    ${flags
      .filter((flag) => flag.required && flag.words.length === 0 && !flag.file)
      .map(({ long }) => long)
      .join(' | ')}) return ;;
  esac
  case $command in
${nodes.map((node) => commandCase(node)).join('\n')}
  esac
}
complete -F _dealgate dealgate
`
}

function valueCase({ long, words, file, required }: FlagNode): string {
  const sources = [...(words.length > 0 ? [`-W '${words.join(' ')}'`] : []), ...(file ? ['-f'] : [])].join(' ')
  const files = file ? 'compopt -o filenames 2>/dev/null; ' : ''
  // A flag whose value may be absent is followed by its value, or by the next flag.
  const unless = required ? '' : '[[ $cur == -* ]] || '
  const offer = `COMPREPLY=($(compgen ${sources} -- "$cur")); return`
  return `    ${long}) ${unless}{ ${files}${offer}; } ;;`
}

function commandCase({ path, flags, commands, operands }: CommandNode): string {
  const words = [
    ...commands.map((below) => below.path.split(' ').at(-1)),
    ...operands.flatMap((operand) => operand.words),
    ...flags.flatMap(({ long, short }) => (short === undefined ? [long] : [long, short])),
  ]
  return `    '${path}') COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$cur")) ;;`
}
